//! Changes a user.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::UserId,
    people::{
        actor::Actor,
        scope::Scope,
        tenancy::{DisablesSelf, User, UserChange, check_user_name},
    },
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
};

/// Changes a user. The keys of a disabled user are refused at once in this process, within seconds in
/// every other; those of a user who is enabled again are accepted again.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` for a blank
/// name, and when the caller would disable their own user.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_user(
    services: &Services,
    actor: &Actor,
    id: UserId,
    change: UserChange,
) -> Result<User, Error> {
    actor.require(Scope::Admin)?;
    if let Some(name) = &change.name {
        check_user_name(name).map_err(Error::refused)?;
    }
    // The last administrator could otherwise lock everyone out.
    if id == actor.user && change.disabled == Some(true) {
        return Err(Error::refused(DisablesSelf));
    }
    let changed = audited(services, actor, |within| async move {
        let now = within.clock.now();
        let updated = within
            .tenancy
            .update_user(actor.organization, id, &change, now);
        let user = updated.await?;
        let target = AuditTarget::new(AuditTargetKind::User, id, &user.email);
        let record = Record::of(AuditAction::UserUpdated, target)
            .with("name", change.name)
            .with("disabled", change.disabled);
        Ok((user, Some(record)))
    })
    .await?;
    // Keys of a disabled user must stop at once, not when the cache expires.
    services.key_cache.evict_user(id);
    Ok(changed)
}
