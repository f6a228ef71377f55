//! Fails executions that were not closed in time.

use crate::{Error, Ports};

/// The most executions that are failed in one step, so that no step holds many rows.
const BATCH: u32 = 500;

/// Fails every running execution whose deadline has passed; returns how many. No caller asks for
/// it: it is the platform's own housekeeping, for all organizations, and several servers may do it
/// at once.
///
/// # Errors
/// What the port answers.
pub async fn sweep_executions(ports: &Ports) -> Result<u64, Error> {
    let mut failed = 0;
    loop {
        let batch = ports
            .executions
            .fail_overdue(ports.clock.now(), BATCH)
            .await?;
        failed += batch;
        if batch < u64::from(BATCH) {
            return Ok(failed);
        }
    }
}
