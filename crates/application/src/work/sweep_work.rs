//! Takes work from workers that gave no sign of life.

use std::sync::PoisonError;

use labdata_domain::ids::ExecutionId;
use labdata_ports::work::LostWork;

use super::end_work::forget_keys;
use crate::{Error, Services, notifications::deliver_notices::deliver_soon};

/// Maximum amount of work per step.
const BATCH: usize = 100;

/// Result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptWork {
    /// Amount of work that is tried again.
    pub requeued: u32,
    /// Amount of work that failed.
    pub failed: usize,
}

/// Retries work whose worker was lost, or fails it if it had lost one before. A worker is lost
/// when this process saw its lease unchanged for [`labdata_domain::work::WORK_LEASE`]. No caller requests
/// it: it is the platform's own housekeeping, for all organizations, and several servers
/// may do it at once.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_work(services: &Services) -> Result<SweptWork, Error> {
    let asked = services.clock.elapsed();
    let held = services.work.held().await?;
    let responded = services.clock.elapsed();
    let leases = held.iter().map(|held| (held.work, held.lease));
    let ended = {
        let watch = services.lease_watch.lock();
        let mut watch = watch.unwrap_or_else(PoisonError::into_inner);
        watch.ended(leases, asked, responded)
    };
    let lost: Vec<LostWork> = held
        .into_iter()
        .filter(|held| ended.contains(&held.work))
        .take(BATCH)
        .map(|held| LostWork {
            held,
            retry: ExecutionId::new(services.ids.next_id()),
        })
        .collect();
    if lost.is_empty() {
        return Ok(SweptWork::default());
    }
    let expired = services.work.expire(services.clock.now(), &lost).await?;
    // The keys of each, whether it is retried or not: a lost worker may be alive, and its script writing.
    for lost in &lost {
        forget_keys(services, lost.held.work);
    }
    if !expired.failed.is_empty() {
        deliver_soon(services).await;
    }
    Ok(SweptWork {
        requeued: expired.requeued,
        failed: expired.failed.len(),
    })
}
