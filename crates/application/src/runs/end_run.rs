//! Records how a run ended.

use labdata_domain::runs::RunEnd;
use labdata_ports::runs::{ClaimedRun, RunClaim};

use crate::{Error, Ports, notifications::notify_failure::notify_failure};

/// Records the end of a run, revokes its key, and tells who started it if it failed; whether the
/// run still was the worker's. Otherwise nothing was changed.
///
/// # Errors
/// What the queue answers; the run then is still the worker's, who may try again.
pub async fn end_run(ports: &Ports, claimed: &ClaimedRun, end: &RunEnd) -> Result<bool, Error> {
    let claim = claimed.claim;
    let ended = ports.runs.finish(claim, end, ports.clock.now()).await?;
    ports.key_cache.evict_execution(claim.execution);
    if let Some(execution) = &ended {
        notify_failure(ports, claim.organization, claimed.started_by, execution).await;
    }
    Ok(ended.is_some())
}

/// Puts a run back into the queue whose worker stops; whether it still was the worker's.
///
/// # Errors
/// What the queue answers.
pub async fn release_run(ports: &Ports, claim: RunClaim) -> Result<bool, Error> {
    let released = ports.runs.release(claim, ports.clock.now()).await?;
    ports.key_cache.evict_execution(claim.execution);
    Ok(released)
}
