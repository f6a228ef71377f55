//! Records how work ended.

use labdata_domain::work::{WorkEnd, WorkId, WorkRecord};
use labdata_ports::work::WorkClaim;

use crate::{
    Error, Services, maintenance::freeing_space::freeing_space,
    notifications::deliver_notices::deliver_soon,
};

/// Records the end of work; returns false, and changes nothing, if the worker has lost it. The notice
/// of the end is recorded with it, and delivered. A full disk gives up its reserve for it.
///
/// # Errors
/// Errors of the queue; the work then is still the worker's, who may try again.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn end_work(services: &Services, claim: WorkClaim, end: &WorkEnd) -> Result<bool, Error> {
    let finish = || services.work.finish(claim, end, services.clock.now());
    // Even on a full disk the end has to be stored, or the work would start again.
    let ended = freeing_space(services, finish).await?;
    forget_keys(services, claim.work);
    if ended.as_ref().is_some_and(WorkRecord::has_notice) {
        deliver_soon(services).await;
    }
    Ok(ended.is_some())
}

/// Puts work back into the queue whose worker stops; returns whether it still was the worker's.
///
/// # Errors
/// Errors of the queue.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn release_work(services: &Services, claim: WorkClaim) -> Result<bool, Error> {
    let release = || services.work.release(claim, services.clock.now());
    let released = freeing_space(services, release).await?;
    forget_keys(services, claim.work);
    Ok(released)
}

/// The keys of a run end with its lease, but this server may have cached them.
pub(super) fn forget_keys(services: &Services, work: WorkId) {
    if let Some(execution) = work.execution() {
        services.key_cache.evict_execution(execution);
    }
}
