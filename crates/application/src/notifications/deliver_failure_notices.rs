//! Delivers the notices of failed executions.

use labdata_domain::{executions::Execution, ids::NotificationId, notifications::failure_notice};
use labdata_ports::notifications::NewNotification;

use crate::{Error, Ports};

/// Largest number of failures that one transaction handles.
const BATCH: u32 = 50;

/// Delivers every notice that is due; returns the number of handled failures. A failure is recorded
/// with the end of its execution, so no crash loses its notice. No caller requests it: it is the
/// platform's own work for all organizations. Several servers may do it at once.
///
/// # Errors
/// Errors of the port. Notices that were not delivered stay for the next call.
pub async fn deliver_failure_notices(ports: &Ports) -> Result<u64, Error> {
    let mut delivered = 0;
    loop {
        let handled = deliver_batch(ports).await?;
        delivered += u64::from(handled);
        if handled < BATCH {
            return Ok(delivered);
        }
    }
}

/// Delivers notices right after an execution has failed, before the next pass of the background task.
/// An error is logged and leaves the notices to that task.
pub(crate) async fn deliver_soon(ports: &Ports) {
    if let Err(error) = deliver_batch(ports).await {
        tracing::warn!(%error, "notices of failed executions wait for the next pass");
    }
}

async fn deliver_batch(ports: &Ports) -> Result<u32, Error> {
    let decide = |execution: &Execution| {
        Some(NewNotification {
            draft: failure_notice(execution)?,
            id: NotificationId::new(ports.ids.next_id()),
            api_key: None,
            now: ports.clock.now(),
        })
    };
    let notifications = &ports.notifications;
    Ok(notifications
        .deliver_failure_notices(BATCH, &decide)
        .await?)
}
