//! Marks a notification as read or unread.

use labdata_domain::{
    ids::NotificationId,
    notifications::Notification,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{Error, Services};

/// Marks one of the caller's notifications as read or unread. Read again retains the first time.
///
/// # Errors
/// `Forbidden` without the write scope and for the key of a run; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn mark_notification(
    services: &Services,
    actor: &Actor,
    id: NotificationId,
    read: bool,
) -> Result<Notification, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let read_at = read.then(|| services.clock.now());
    Ok(services
        .notifications
        .mark(actor.organization, actor.user, id, read_at)
        .await?)
}
