//! Takes trainings from workers that gave no sign of life.

use crate::{
    Error, Ports, notifications::deliver_notices::deliver_soon, work::sweep_runs::SweptRuns,
};

/// Maximum number of trainings per step.
const BATCH: u32 = 100;

/// Returns trainings whose worker was lost to the queue, or fails those that had lost one before. It is
/// housekeeping for all organizations, and several servers may do it at once.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_trainings(ports: &Ports) -> Result<SweptRuns, Error> {
    let expired = ports.trainings.expire(ports.clock.now(), BATCH).await?;
    let swept = SweptRuns {
        requeued: expired.requeued,
        failed: expired.failed.len(),
    };
    if swept.failed > 0 {
        deliver_soon(ports).await;
    }
    Ok(swept)
}
