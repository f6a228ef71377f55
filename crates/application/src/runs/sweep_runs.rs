//! Takes runs from workers that gave no sign of life.

use labdata_ports::executions::OverdueExecution;

use crate::{Error, Ports, notifications::notify_failure::notify_failure};

/// The most runs that are taken in one step.
const BATCH: u32 = 100;

/// Result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptRuns {
    /// Number of runs that returned to the queue.
    pub requeued: u32,
    /// Number of runs that failed.
    pub failed: usize,
}

/// Puts runs whose worker was lost back into the queue, or fails those that had lost one before
/// and tells who started them. No caller asks for it: it is the platform's own housekeeping, for
/// all organizations, and several servers may do it at once.
///
/// # Errors
/// What the queue answers.
pub async fn sweep_runs(ports: &Ports) -> Result<SweptRuns, Error> {
    let expired = ports.runs.expire(ports.clock.now(), BATCH).await?;
    let swept = SweptRuns {
        requeued: expired.requeued,
        failed: expired.failed.len(),
    };
    for lost in expired.failed {
        let OverdueExecution {
            organization,
            execution,
            started_by,
        } = lost;
        ports.key_cache.evict_execution(execution.id);
        notify_failure(ports, organization, started_by, &execution).await;
    }
    Ok(swept)
}
