//! Makes an API key.

use std::collections::BTreeSet;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    catalog::TableIdentity,
    ids::{ApiKeyId, UserId},
    names::Named,
    people::{
        ApiKey, PlainApiKey, UnknownKeyTable,
        actor::Actor,
        check_expiry,
        role::RoleExceeded,
        scope::{Scope, Scopes},
        tenancy::UserDisabled,
    },
    refusal::RefusalKind,
};
use time::OffsetDateTime;

use super::named_key::NamedKey;
use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::visible::visible_catalog,
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
    /// Names of the only tables that it concerns; `None` for all.
    pub tables: Option<Vec<String>>,
}

/// A key that was made.
#[derive(Clone, Debug)]
pub struct CreatedKey {
    /// The key.
    pub named: NamedKey,
    /// The plain key.
    pub plain: PlainApiKey,
}

/// Makes a key for the caller's user, or for another one of the organization. The plain key is returned
/// this once and retained nowhere.
///
/// # Errors
/// `Forbidden` without the admin scope, or when the caller, or the role of the key's user, lacks a scope that
/// the key is to have, and for tables of which the caller's key has none; `NotFound` for an unknown user; `Invalid` when it would be expired already
/// or its user is disabled.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_api_key(
    services: &Services,
    actor: &Actor,
    command: CreateApiKey,
) -> Result<CreatedKey, Error> {
    actor.require(Scope::Admin)?;
    actor.require_to_grant(command.scopes)?;
    let name = Named::ApiKey.parse(&command.name).map_err(Error::refused)?;
    let now = services.clock.now();
    check_expiry(command.expires_at, now).map_err(Error::refused)?;
    let user = command.user.unwrap_or(actor.user);
    check_user(services, actor, user, command.scopes).await?;
    let narrowing = narrowing(services, actor, command.tables).await?;
    for _ in 0..ATTEMPTS {
        let plain = random_key(services);
        let key = ApiKey {
            id: ApiKeyId::new(services.ids.next_id()),
            organization: actor.organization,
            user,
            name: name.as_str().to_owned(),
            prefix: plain.prefix().to_owned(),
            hash: plain.hash(),
            scopes: command.scopes,
            tables: narrowing.tables.clone(),
            execution: None,
            created_at: now,
            expires_at: command.expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        let named = NamedKey {
            tables: narrowing.names.clone(),
            key,
        };
        match add(services, actor, &named).await {
            Ok(()) => return Ok(CreatedKey { named, plain }),
            // The prefix is taken; the next one is random again.
            Err(error) if error.kind() == Some(RefusalKind::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Internal(
        "every random key prefix is taken".to_owned(),
    ))
}

async fn add(services: &Services, actor: &Actor, named: &NamedKey) -> Result<(), Error> {
    audited(services, actor, |within| async move {
        within.api_keys.add(&named.key).await?;
        let mut record = created(&named.key);
        if let Some(tables) = &named.tables {
            record = record.with("tables", tables.clone());
        }
        Ok(((), Some(record)))
    })
    .await
}

/// Refuses a user who is disabled, or whose role lacks a scope of the key.
async fn check_user(
    services: &Services,
    actor: &Actor,
    user: UserId,
    scopes: Scopes,
) -> Result<(), Error> {
    let is_own = user == actor.user;
    let user = services.tenancy.user(actor.organization, user).await?;
    // The caller's own user has just been found to be enabled, unless the operator acts for the user.
    if !is_own && user.disabled_at.is_some() {
        return Err(Error::refused(UserDisabled));
    }
    match scopes.first_missing_from(user.role.scopes()) {
        None => Ok(()),
        Some(scope) => Err(Error::refused(RoleExceeded {
            email: user.email,
            role: user.role,
            scope,
        })),
    }
}

/// Tables to which a key is narrowed; `None` for all.
#[derive(Default)]
struct Narrowing {
    tables: Option<Vec<TableIdentity>>,
    names: Option<Vec<String>>,
}

/// The tables to which a key is narrowed: at most those of the key that makes it, which are all that its maker sees.
async fn narrowing(
    services: &Services,
    actor: &Actor,
    names: Option<Vec<String>>,
) -> Result<Narrowing, Error> {
    if names.is_none() && actor.rights.tables().is_none() {
        return Ok(Narrowing::default());
    }
    let catalog = visible_catalog(services, actor).await?;
    let names: BTreeSet<String> = if let Some(names) = names {
        names.into_iter().collect()
    } else {
        let all = catalog.tables().iter();
        all.map(|table| table.name.clone()).collect()
    };
    let tables = names.iter().map(|name| {
        let table = catalog.table(name);
        let table = table.ok_or_else(|| Error::refused(UnknownKeyTable(name.clone())))?;
        Ok(table.identity())
    });
    Ok(Narrowing {
        tables: Some(tables.collect::<Result<_, Error>>()?),
        names: Some(names.into_iter().collect()),
    })
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
