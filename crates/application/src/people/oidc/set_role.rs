//! Gives a user the role that the identity provider says.

use labdata_domain::people::{
    actor::Actor,
    role::Role,
    tenancy::{User, UserChange},
};

use super::BY;
use crate::{
    Error, Services,
    audit::record::audited,
    people::update_user::{is_last_admin, role_changed},
};

/// Gives a user a role, and returns the user. The last administrator stays one: a change at the provider must not
/// leave the organization without anybody who manages it.
pub(super) async fn set_role(services: &Services, user: User, role: Role) -> Result<User, Error> {
    if user.role == role {
        return Ok(user);
    }
    let (organization, id) = (user.organization, user.id);
    let operator = Actor::operator(organization, id);
    let change = UserChange {
        role: Some(role),
        ..UserChange::default()
    };
    let changed = audited(services, &operator, |within| async move {
        if change.takes_administration() && is_last_admin(&within, organization, id).await? {
            tracing::warn!(user = %id, %role, "the last administrator does not get the role that the provider says");
            return Ok((user, None));
        }
        // Read again: an administrator may have changed the role since.
        let before = within.tenancy.user(organization, id).await?;
        let now = within.clock.now();
        let updated = within.tenancy.update_user(organization, id, &change, now);
        let after = updated.await?;
        let record = role_changed(&before, &after).map(|record| record.with("by", BY));
        Ok((after, record))
    })
    .await?;
    // Rights of a former role stop at once, not when the cache expires.
    services.key_cache.evict_user(id);
    Ok(changed)
}
