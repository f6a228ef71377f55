//! Deletes events that are no longer retained.

use labdata_domain::events::EVENT_RETENTION;

use crate::{Error, Services};

/// Maximum number of events that are deleted in one step.
const BATCH: u32 = 5000;

/// Deletes all events that are older than [`EVENT_RETENTION`]; returns their number. Several servers may
/// do it at once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_events(services: &Services) -> Result<u64, Error> {
    let before = services.clock.now() - EVENT_RETENTION;
    let mut deleted = 0;
    loop {
        let batch = services.events.delete_before(before, BATCH).await?;
        deleted += batch;
        if batch < u64::from(BATCH) {
            return Ok(deleted);
        }
    }
}
