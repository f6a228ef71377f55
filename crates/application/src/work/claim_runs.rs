//! Claims queued runs for a worker.

use labdata_domain::work::{FreeSlots, RUN_LEASE};
use labdata_ports::work::{
    ClaimedRun,
    runner::{GRACE, RunLimits},
};
use time::Duration;

use crate::{Error, Ports, maintenance::disk_reserve::require_reserve};

/// Claims queued runs of all organizations for free slots, each for [`RUN_LEASE`]. Their executions
/// time out after the limits of preparation and script, plus the time that it takes to stop both. On a
/// full disk all runs stay queued.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn claim_runs(
    ports: &Ports,
    limits: RunLimits,
    slots: FreeSlots,
) -> Result<Vec<ClaimedRun>, Error> {
    // Runs write logs and results; on a full disk they would only fail.
    if require_reserve(ports).is_err() {
        return Ok(Vec::new());
    }
    // The run's key expires with this deadline, so it covers both phases and the time to stop them.
    let timeout = limits.preparation + limits.wall_clock + 2 * GRACE;
    let timeout = Duration::try_from(timeout).unwrap_or(Duration::MAX);
    let now = ports.clock.now();
    Ok(ports.runs.claim(now, RUN_LEASE, timeout, slots).await?)
}
