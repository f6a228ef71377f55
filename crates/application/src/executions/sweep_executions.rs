//! Fails executions that were not closed in time.

use crate::{Error, Services, notifications::deliver_notices::deliver_soon};

/// The most executions that are failed in one step, so that no step holds many rows.
const BATCH: u32 = 500;

/// Fails every running execution whose deadline has passed; returns their number. No caller requests
/// it: it is the platform's own housekeeping, for all organizations, and several servers may do it
/// at once.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_executions(services: &Services) -> Result<u64, Error> {
    let mut failed = 0;
    loop {
        let batch = services
            .executions
            .fail_overdue(services.clock.now(), BATCH)
            .await?;
        let count = batch.len();
        if count > 0 {
            deliver_soon(services).await;
        }
        failed += u64::try_from(count).unwrap_or(u64::MAX);
        if count < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(failed);
        }
    }
}
