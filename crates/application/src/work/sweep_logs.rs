//! Deletes logs of runs and trainings that ended long ago.

use crate::{Error, Services};

/// Maximum number of logs that are deleted in one step.
const BATCH: u32 = 100;

/// Deletes all logs that the retention no longer covers; returns their number. Several servers may do it
/// at once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_logs(services: &Services) -> Result<u64, Error> {
    let now = services.clock.now();
    let Some(ended_before) = services.log_retention.ended_before(now) else {
        return Ok(0);
    };
    let mut deleted = 0;
    loop {
        let batch = services.work_logs.delete_ended(ended_before, now, BATCH);
        let batch = batch.await?;
        deleted += batch;
        if batch < u64::from(BATCH) {
            return Ok(deleted);
        }
    }
}
