//! Lists the caller's notifications, and counts the unread ones.

use labdata_domain::{
    notifications::Notification,
    page::{Page, PageRequest},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The caller's inbox, newest first; only what is unread, or only what is read, if `unread` says so.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_notifications(
    services: &Services,
    actor: &Actor,
    unread: Option<bool>,
    page: PageRequest,
) -> Result<Held<Page<Notification>>, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let value = services
        .notifications
        .list(actor.organization, actor.user, unread, page)
        .await?;
    Ok(Held { value, slots })
}

/// Counts the caller's unread notifications.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn count_unread_notifications(services: &Services, actor: &Actor) -> Result<u64, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    Ok(services
        .notifications
        .count_unread(actor.organization, actor.user)
        .await?)
}
