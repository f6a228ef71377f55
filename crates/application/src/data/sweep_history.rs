//! Deletes recorded changes that are no longer retained.

use time::Duration;

use crate::{Error, Services};

/// Maximum number of changes that are deleted in one step.
const BATCH: u32 = 5000;

/// Deletes all recorded changes that are older than [`Services::history_days`]; returns their number.
/// What they replaced can no longer be restored.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_history(services: &Services) -> Result<u64, Error> {
    let Some(days) = services.history_days else {
        return Ok(0);
    };
    let before = services.clock.now() - Duration::days(days.into());
    let mut deleted = 0;
    loop {
        let batch = services.data.sweep_history(before, BATCH).await?;
        deleted += batch;
        if batch < u64::from(BATCH) {
            return Ok(deleted);
        }
    }
}
