//! Keys as the operator of the platform manages them, on its machine, without a key.
//!
//! An operator with access to the database may do everything; these have no actor, and no
//! endpoint may call them.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{OrganizationId, UserId},
    people::{
        ApiKey, PlainApiKey,
        actor::Actor,
        role::Role,
        scope::Scopes,
        tenancy::{Organization, User, UserChange, check_email, check_organization_name},
    },
    refusal::{Refusal, Resource},
    work::BackendPolicy,
};
use time::Duration;

use crate::{
    Error, Services,
    audit::record::{Record, record},
    people::{
        create_api_key::{CreateApiKey, CreatedKey, create_api_key},
        revoke_api_key::revoke_api_key,
        update_user::update_user,
    },
};

/// A key that the operator issues.
#[derive(Clone, Debug)]
pub struct IssueKey {
    /// Name for people.
    pub name: String,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// Time until the key expires; `None` for a key that never does.
    pub lifetime: Option<Duration>,
}

/// A key that the operator was issued.
#[derive(Clone, Debug)]
pub struct IssuedKey {
    /// The key.
    pub key: ApiKey,
    /// Its plain text.
    pub plain: PlainApiKey,
    /// True if the organization was created for it.
    pub created_organization: bool,
    /// True if the user was created for it.
    pub created_user: bool,
    /// The role that its user has now, if the former one was too narrow for the key.
    pub raised_to: Option<Role>,
}

/// Makes a key for that user of that organization; both are created when missing. The user gets the role that the
/// scopes need, and retains a wider one. An organization is not
/// created if the job backend would then be refused.
///
/// # Errors
/// `Invalid` when a name is blank, the key would be expired already, or the job backend does not
/// permit another organization.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn issue(
    services: &Services,
    policy: BackendPolicy,
    organization: &str,
    email: &str,
    command: IssueKey,
) -> Result<IssuedKey, Error> {
    let (organization, email) = (organization.trim(), email.trim());
    check_organization_name(organization)
        .and_then(|()| check_email(email))
        .map_err(Error::refused)?;
    // Before it exists: users of a shared backend would see the runs of both organizations.
    check_new_organization(services, policy, organization).await?;
    let candidate = Organization {
        id: OrganizationId::new(services.ids.next_id()),
        name: organization.to_owned(),
        created_at: services.clock.now(),
    };
    let organization = services.tenancy.ensure_organization(&candidate).await?;
    let created_organization = organization.id == candidate.id;
    let candidate = User {
        id: UserId::new(services.ids.next_id()),
        organization: organization.id,
        email: email.to_owned(),
        name: email.to_owned(),
        role: Role::of_scopes(command.scopes),
        groups: Vec::new(),
        created_at: services.clock.now(),
        disabled_at: None,
    };
    let user = services.tenancy.ensure_user(&candidate).await?;
    let operator = Actor::operator(organization.id, user.id);
    let created_user = user.id == candidate.id;
    if created_user {
        let target = AuditTarget::new(AuditTargetKind::User, user.id, &user.email);
        let made = Record::of(AuditAction::UserCreated, target).with("name", user.name.clone());
        record(services, &operator, made).await?;
    }
    let raised_to = raise_role(services, &operator, &user, command.scopes).await?;
    let command = CreateApiKey {
        name: command.name,
        scopes: command.scopes,
        expires_at: command
            .lifetime
            .map(|lifetime| services.clock.now() + lifetime),
        user: None,
        tables: None,
    };
    let CreatedKey { named, plain } = create_api_key(services, &operator, command).await?;
    Ok(IssuedKey {
        key: named.key,
        plain,
        created_organization,
        created_user,
        raised_to,
    })
}

/// Gives a user the role that a key of these scopes needs; returns it if it is a wider one.
async fn raise_role(
    services: &Services,
    operator: &Actor,
    user: &User,
    scopes: Scopes,
) -> Result<Option<Role>, Error> {
    let needed = Role::of_scopes(scopes);
    if needed <= user.role {
        return Ok(None);
    }
    let change = UserChange {
        role: Some(needed),
        ..UserChange::default()
    };
    update_user(services, operator, user.id, change).await?;
    Ok(Some(needed))
}

/// Refuses to create an organization with which the job backend would be refused.
async fn check_new_organization(
    services: &Services,
    policy: BackendPolicy,
    name: &str,
) -> Result<(), Error> {
    let organizations = services.tenancy.organizations().await?;
    if organizations.iter().any(|known| known.name == name) {
        return Ok(());
    }
    let refused = policy.check(organizations.len() + 1);
    refused.map_err(|refusal| {
        Refusal::from(refusal)
            .within(format_args!("with organization {name:?}, "))
            .into()
    })
}

/// Every organization's keys, the oldest organization and the newest key first.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list(services: &Services) -> Result<Vec<(Organization, ApiKey)>, Error> {
    let mut all = Vec::new();
    for organization in services.tenancy.organizations().await? {
        let keys = services.api_keys.list(organization.id).await?;
        all.extend(keys.into_iter().map(|key| (organization.clone(), key)));
    }
    Ok(all)
}

/// Revokes the key of that prefix in any organization: on running servers within seconds.
///
/// # Errors
/// `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revoke(services: &Services, prefix: &str) -> Result<ApiKey, Error> {
    let found = services.api_keys.find_by_prefix(prefix).await?;
    let key = found.ok_or_else(|| Error::not_found(Resource::ApiKey))?.key;
    let operator = Actor::operator(key.organization, key.user);
    revoke_api_key(services, &operator, key.id).await?;
    Ok(key)
}
