//! Fails executions that were not closed in time.

use labdata_ports::executions::OverdueExecution;

use crate::{Error, Ports, notifications::notify_failure::notify_failure};

/// The most executions that are failed in one step, so that no step holds many rows.
const BATCH: u32 = 500;

/// Fails every running execution whose deadline has passed, and tells who started it; returns how
/// many. No caller asks for
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
        let count = batch.len();
        for overdue in batch {
            let OverdueExecution {
                organization,
                execution,
                started_by,
            } = overdue;
            notify_failure(ports, organization, started_by, &execution).await;
        }
        failed += u64::try_from(count).unwrap_or(u64::MAX);
        if count < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(failed);
        }
    }
}
