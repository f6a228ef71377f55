//! Claims queued work for a worker.

use labdata_domain::work::{FreeSlots, WORK_LEASE};
use labdata_ports::work::{ClaimTerms, ClaimedWork, runner::GRACE};
use time::Duration;

use super::WorkContext;
use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Claims queued work of all organizations for free slots, each for [`WORK_LEASE`]. Executions
/// time out after the limits of preparation and script, plus the time that it takes to stop both. On a
/// full disk all work stays queued.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn claim_work(
    services: &Services,
    context: &WorkContext,
    slots: FreeSlots,
) -> Result<Vec<ClaimedWork>, Error> {
    // Work writes logs and results; on a full disk it would only fail.
    if require_reserve(services).is_err() {
        return Ok(Vec::new());
    }
    // The key of a run expires with this deadline, so it covers both phases and the time to stop them.
    let limits = context.limits();
    let timeout = limits.preparation + limits.wall_clock + 2 * GRACE;
    let terms = ClaimTerms {
        now: services.clock.now(),
        lease: WORK_LEASE,
        timeout: Duration::try_from(timeout).unwrap_or(Duration::MAX),
    };
    Ok(services.work.claim(context.kind(), slots, terms).await?)
}
