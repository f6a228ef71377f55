//! Takes work from workers that gave no sign of life.

use super::end_work::forget_keys;
use crate::{Error, Services, notifications::deliver_notices::deliver_soon};

/// Maximum amount of work per step.
const BATCH: u32 = 100;

/// Result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptWork {
    /// Amount of work that returned to the queue.
    pub requeued: u32,
    /// Amount of work that failed.
    pub failed: usize,
}

/// Returns work whose worker was lost to the queue, or fails it if it had lost one before. No caller
/// requests it: it is the platform's own housekeeping, for all organizations, and several servers
/// may do it at once.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_work(ports: &Services) -> Result<SweptWork, Error> {
    let expired = ports.work.expire(ports.clock.now(), BATCH).await?;
    for lost in &expired.failed {
        forget_keys(ports, lost.id());
    }
    if !expired.failed.is_empty() {
        deliver_soon(ports).await;
    }
    Ok(SweptWork {
        requeued: expired.requeued,
        failed: expired.failed.len(),
    })
}
