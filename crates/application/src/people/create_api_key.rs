//! Makes an API key.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{ApiKeyId, UserId},
    people::{
        ApiKey, PlainApiKey,
        actor::{Actor, MissingScope},
        check_expiry,
        scope::{Scope, Scopes},
        tenancy::UserDisabled,
    },
    refusal::RefusalKind,
};
use time::OffsetDateTime;

use crate::{
    Error, Services,
    audit::record::{Record, audited},
};

/// Prefixes are random; two alike in a row do not happen, ten never.
const ATTEMPTS: u32 = 10;

/// The wanted key.
#[derive(Clone, Debug)]
pub struct CreateApiKey {
    /// A name for people.
    pub name: String,
    /// Its scopes.
    pub scopes: Scopes,
    /// From when on it is refused.
    pub expires_at: Option<OffsetDateTime>,
    /// User of the organization to whom it belongs; the caller if `None`.
    pub user: Option<UserId>,
}

/// Makes a key for the caller's user, or for another one of the organization. The plain key is returned
/// this once and retained nowhere.
///
/// # Errors
/// `Forbidden` without the admin scope, or when the caller lacks a scope that the key is
/// to have; `NotFound` for an unknown user; `Invalid` when it would be expired already
/// or its user is disabled.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_api_key(
    services: &Services,
    actor: &Actor,
    command: CreateApiKey,
) -> Result<(ApiKey, PlainApiKey), Error> {
    actor.require(Scope::Admin)?;
    // A key must not grant more than the key that makes it.
    if let Some(missing) = command.scopes.first_missing_from(actor.scopes) {
        return Err(MissingScope(missing).into());
    }
    let now = services.clock.now();
    check_expiry(command.expires_at, now).map_err(Error::refused)?;
    let user = command.user.unwrap_or(actor.user);
    require_enabled(services, actor, user).await?;
    for _ in 0..ATTEMPTS {
        let plain = random_key(services);
        let key = ApiKey {
            id: ApiKeyId::new(services.ids.next_id()),
            organization: actor.organization,
            user,
            name: command.name.clone(),
            prefix: plain.prefix().to_owned(),
            hash: plain.hash(),
            scopes: command.scopes,
            execution: None,
            created_at: now,
            expires_at: command.expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        let added = &key;
        let added = audited(services, actor, |within| async move {
            within.api_keys.add(added).await?;
            Ok(((), Some(created(added))))
        });
        match added.await {
            Ok(()) => return Ok((key, plain)),
            // The prefix is taken; the next one is random again.
            Err(error) if error.kind() == Some(RefusalKind::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Internal(
        "every random key prefix is taken".to_owned(),
    ))
}

/// Refuses a user who is disabled.
async fn require_enabled(services: &Services, actor: &Actor, user: UserId) -> Result<(), Error> {
    // The caller's own user has just been found to be enabled.
    if user == actor.user {
        return Ok(());
    }
    let user = services.tenancy.user(actor.organization, user).await?;
    if user.disabled_at.is_some() {
        return Err(Error::refused(UserDisabled));
    }
    Ok(())
}

pub(crate) fn created(key: &ApiKey) -> Record {
    let target = AuditTarget::new(AuditTargetKind::ApiKey, key.id, &key.name);
    let scopes: Vec<_> = key.scopes.iter().map(Scope::as_str).collect();
    Record::of(AuditAction::ApiKeyCreated, target)
        .with("prefix", key.prefix.clone())
        .with("scopes", scopes)
        .with("user_id", key.user.to_string())
}

/// A key of random bytes.
pub(crate) fn random_key(services: &Services) -> PlainApiKey {
    let (mut prefix, mut secret) = ([0; 5], [0; 32]);
    services.ids.fill_random(&mut prefix);
    services.ids.fill_random(&mut secret);
    PlainApiKey::from_random(prefix, secret)
}
