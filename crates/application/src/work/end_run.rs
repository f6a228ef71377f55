//! Records how a run ended.

use labdata_domain::{notifications::has_failure_notice, work::RunEnd};
use labdata_ports::work::{ClaimedRun, RunClaim};

use crate::{
    Error, Ports, maintenance::freeing_space::freeing_space,
    notifications::deliver_notices::deliver_soon,
};

/// Records the end of a run and revokes its key; returns false, and changes nothing, if the worker has
/// lost the run. A failure is recorded with the end, and its notice delivered. A full disk gives up its
/// reserve for it.
///
/// # Errors
/// errors of the queue; the run then is still the worker's, who may try again.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn end_run(ports: &Ports, claimed: &ClaimedRun, end: &RunEnd) -> Result<bool, Error> {
    let claim = claimed.claim;
    let finish = || ports.runs.finish(claim, end, ports.clock.now());
    // Even on a full disk the end has to be stored, or the run would start again.
    let ended = freeing_space(ports, finish).await?;
    // The run's key ends with it, but this server may have cached it.
    ports.key_cache.evict_execution(claim.execution);
    if ended.as_ref().is_some_and(has_failure_notice) {
        deliver_soon(ports).await;
    }
    Ok(ended.is_some())
}

/// Puts a run back into the queue whose worker stops; whether it still was the worker's.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn release_run(ports: &Ports, claim: RunClaim) -> Result<bool, Error> {
    let release = || ports.runs.release(claim, ports.clock.now());
    let released = freeing_space(ports, release).await?;
    ports.key_cache.evict_execution(claim.execution);
    Ok(released)
}
