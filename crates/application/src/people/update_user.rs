//! Changes a user.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{OrganizationId, UserId},
    people::{
        actor::Actor,
        role::LastAdmin,
        run_key::GuardedAction,
        scope::Scope,
        tenancy::{DisablesSelf, User, UserChange, check_user_name},
    },
};
use labdata_ports::PortError;

use crate::{
    Error, Services,
    audit::record::{Record, audited, record},
};

/// Changes a user. The keys of a disabled user are refused at once in this process, within seconds in
/// every other; those of a user who is enabled again are accepted again.
///
/// # Errors
/// `Forbidden` without the admin scope, to a narrowed key, and for a role that adds scopes that the key lacks; `NotFound`;
/// `Invalid` for a blank name, when the caller would disable their own user, and when the user is the last administrator.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_user(
    services: &Services,
    actor: &Actor,
    id: UserId,
    change: UserChange,
) -> Result<User, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    if let Some(name) = &change.name {
        check_user_name(name).map_err(Error::refused)?;
    }
    // The last administrator could otherwise lock everyone out.
    if id == actor.user && change.disabled == Some(true) {
        return Err(Error::refused(DisablesSelf));
    }
    let changed = audited(services, actor, |within| async move {
        if change.takes_administration() && is_last_admin(&within, actor.organization, id).await? {
            return Err(Error::refused(LastAdmin));
        }
        let before = within.tenancy.user(actor.organization, id).await?;
        if let Some(role) = change.role {
            actor.require_to_give_role(Some(before.role), role)?;
        }
        let now = within.clock.now();
        let updated = within
            .tenancy
            .update_user(actor.organization, id, &change, now);
        let user = updated.await?;
        if let Some(entry) = role_changed(&before, &user) {
            record(&within, actor, entry).await?;
        }
        let target = AuditTarget::new(AuditTargetKind::User, id, &user.email);
        let updated = change.name.is_some() || change.disabled.is_some();
        let record = Record::of(AuditAction::UserUpdated, target)
            .with("name", change.name)
            .with("disabled", change.disabled);
        Ok((user, updated.then_some(record)))
    })
    .await?;
    // Keys of a disabled user must stop at once, not when the cache expires; so must rights of a former role.
    services.key_cache.evict_user(id);
    Ok(changed)
}

/// Record of a changed role; `None` if it is the same.
pub(super) fn role_changed(before: &User, after: &User) -> Option<Record> {
    let target = AuditTarget::new(AuditTargetKind::User, after.id, &after.email);
    let record = Record::of(AuditAction::UserRoleChanged, target)
        .with("from", before.role.as_str())
        .with("to", after.role.as_str());
    (before.role != after.role).then_some(record)
}

/// Returns whether the user is the organization's only administrator who is enabled. Within a unit of work this holds
/// until its end.
pub(super) async fn is_last_admin(
    services: &Services,
    organization: OrganizationId,
    id: UserId,
) -> Result<bool, PortError> {
    let admins = services.tenancy.enabled_admins_with(organization, id);
    Ok(admins.await? == [id])
}
