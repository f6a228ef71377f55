//! Takes runs from workers that gave no sign of life.

use crate::{Error, Ports, notifications::deliver_notices::deliver_soon};

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

/// Returns runs whose worker was lost to the queue, or fails those that had lost one before. No caller
/// requests it: it is the platform's own housekeeping, for all organizations, and several servers
/// may do it at once.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_runs(ports: &Ports) -> Result<SweptRuns, Error> {
    let expired = ports.runs.expire(ports.clock.now(), BATCH).await?;
    let swept = SweptRuns {
        requeued: expired.requeued,
        failed: expired.failed.len(),
    };
    for lost in &expired.failed {
        ports.key_cache.evict_execution(lost.execution.id);
    }
    if swept.failed > 0 {
        deliver_soon(ports).await;
    }
    Ok(swept)
}
