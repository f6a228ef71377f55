//! Sends a notification to the caller.

use labdata_domain::{
    ids::NotificationId,
    notifications::{Draft, Sent},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::notifications::{NewNotification, SendError};

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Sends a notification to the caller's own inbox, and by e-mail where the caller wants that.
///
/// # Errors
/// `Forbidden` without the write scope; `Invalid` when it may not say that;
/// `Busy` when as many as may be were delivered.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn send_notification(
    services: &Services,
    actor: &Actor,
    draft: Draft,
) -> Result<Sent, Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    draft.check().map_err(Error::refused)?;
    let new = NewNotification {
        id: NotificationId::new(services.ids.next_id()),
        draft,
        api_key: Some(actor.api_key),
        now: services.clock.now(),
    };
    match services
        .notifications
        .send(
            actor.organization,
            actor.user,
            &new,
            services.notification_caps,
        )
        .await
    {
        Ok(sent) => Ok(sent),
        Err(SendError::Capped(reached)) => Err(Error::refused(reached)),
        Err(SendError::Port(error)) => Err(error.into()),
    }
}
