//! Delivers the notices of ended executions and trainings.

use labdata_domain::{ids::NotificationId, notifications::Ended};
use labdata_ports::notifications::NewNotification;

use crate::{Error, Services};

/// Largest number of ends that one transaction handles.
const BATCH: u32 = 50;

/// Delivers every notice that is due; returns the number of handled ends. A notice is recorded in the
/// transaction of the end, so no crash loses it. No caller requests it: it is the
/// platform's own work for all organizations. Several servers may do it at once.
///
/// # Errors
/// Errors of the port. Notices that were not delivered stay for the next call.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn deliver_notices(services: &Services) -> Result<u64, Error> {
    let mut delivered = 0;
    loop {
        let handled = deliver_batch(services).await?;
        delivered += u64::from(handled);
        if handled < BATCH {
            return Ok(delivered);
        }
    }
}

/// Delivers notices right after an execution or a training has ended, before the next pass of the background task.
/// An error is logged and leaves the notices to that task.
pub(crate) async fn deliver_soon(services: &Services) {
    // The end that the notice is about is already stored, so it must not fail because of this.
    if let Err(error) = deliver_batch(services).await {
        tracing::warn!(%error, "notices wait for the next pass");
    }
}

async fn deliver_batch(services: &Services) -> Result<u32, Error> {
    let decide = |ended: &Ended| {
        Some(NewNotification {
            draft: ended.notice()?,
            id: NotificationId::new(services.ids.next_id()),
            api_key: None,
            now: services.clock.now(),
        })
    };
    let notifications = &services.notifications;
    Ok(notifications.deliver_notices(BATCH, &decide).await?)
}
