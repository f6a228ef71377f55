//! Makes a new platform usable: an organization, an administrator, a key.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{ApiKeyId, OrganizationId, UserId},
    people::{
        ApiKey, PlainApiKey,
        actor::Actor,
        role::Role,
        scope::Scopes,
        tenancy::{Organization, User},
    },
    refusal::RefusalKind,
};

use crate::{
    Error, Services,
    audit::record::{Record, audited, record},
    people::create_api_key::created,
};

/// The organization of a new platform.
pub const ORGANIZATION: &str = "default";
/// Its administrator.
pub const ADMINISTRATOR: &str = "admin@localhost";

/// On the very first start, creates the organization, its administrator and a key with every scope:
/// the `chosen` one, or a new one, which is returned this once. `None` on every other start.
///
/// Servers that start at once on one database end with one key. A start that was cut short before
/// the key was stored is completed by the next one. It takes no actor: there is no key yet.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn first_start(
    services: &Services,
    chosen: Option<PlainApiKey>,
) -> Result<Option<PlainApiKey>, Error> {
    let organizations = services.tenancy.organizations().await?;
    let unfinished = match organizations.as_slice() {
        [] => true,
        // An earlier start may have stopped between the organization and its key.
        [only] if only.name == ORGANIZATION => services.api_keys.list(only.id).await?.is_empty(),
        _ => false,
    };
    if !unfinished {
        return Ok(None);
    }
    let now = services.clock.now();
    let candidate = Organization {
        id: OrganizationId::new(services.ids.next_id()),
        name: ORGANIZATION.to_owned(),
        created_at: now,
    };
    let organization = services.tenancy.ensure_organization(&candidate).await?;
    let candidate = User {
        id: UserId::new(services.ids.next_id()),
        organization: organization.id,
        email: ADMINISTRATOR.to_owned(),
        name: ADMINISTRATOR.to_owned(),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: now,
        disabled_at: None,
    };
    let plain = chosen
        .clone()
        .unwrap_or_else(|| first_key(services, organization.id));
    match add_first_key(services, candidate, &plain).await {
        Ok(()) if chosen.is_none() => Ok(Some(plain)),
        Ok(()) => Ok(None),
        // Another server was faster: the prefix is the same for all of them.
        Err(error) if error.kind() == Some(RefusalKind::Conflict) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the administrator and the key as one transaction, with their entries in the audit log.
async fn add_first_key(
    services: &Services,
    administrator: User,
    plain: &PlainApiKey,
) -> Result<(), Error> {
    let operator = Actor::operator(administrator.organization, administrator.id);
    let operator = &operator;
    audited(services, operator, |within| async move {
        let user = within.tenancy.ensure_user(&administrator).await?;
        // Only a user that was created now: one of that address may have been there.
        if user.id == administrator.id {
            let target = AuditTarget::new(AuditTargetKind::User, user.id, &user.email);
            let made =
                Record::of(AuditAction::UserCreated, target).with("role", user.role.as_str());
            record(&within, operator, made).await?;
        }
        let key = ApiKey {
            id: ApiKeyId::new(within.ids.next_id()),
            organization: user.organization,
            user: user.id,
            name: "first start".to_owned(),
            prefix: plain.prefix().to_owned(),
            hash: plain.hash(),
            scopes: Scopes::all(),
            tables: None,
            execution: None,
            created_at: administrator.created_at,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        within.api_keys.add(&key).await?;
        Ok(((), Some(created(&key))))
    })
    .await
}

/// A key whose secret is random and whose prefix follows from the organization, so that of racing
/// servers one stores its key.
fn first_key(services: &Services, organization: OrganizationId) -> PlainApiKey {
    // Servers that start at once derive the same prefix, so only one of their keys is stored.
    let (_, low) = organization.as_uuid().as_u64_pair();
    let [_, _, _, prefix @ ..] = low.to_be_bytes();
    let mut secret = [0; 32];
    services.ids.fill_random(&mut secret);
    PlainApiKey::from_random(prefix, secret)
}
