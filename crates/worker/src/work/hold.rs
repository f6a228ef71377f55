//! Renews the lease of work while its script runs.

use std::time::Duration;

use labdata_application::{Services, work::renew_lease::WorkLease};
use labdata_domain::work::WORK_HEARTBEAT;
use labdata_ports::work::{WorkClaim, WorkNews};
use tokio::time::{sleep, timeout};

/// Pause after a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Renews the lease. Returns once the worker has lost the work: it was cancelled or ended, another
/// worker has it, or the lease may have ended while the queue was unavailable or this process stood
/// still.
pub(super) async fn until_lost(services: &Services, claim: WorkClaim, mut lease: WorkLease) {
    let mut ended = services.work.subscribe(claim.work.kind(), WorkNews::Ended);
    let heartbeat = Duration::try_from(WORK_HEARTBEAT).unwrap_or_default();
    let mut pause = heartbeat;
    loop {
        tokio::select! {
            // Notifies of any work of the kind; the renewal finds out whether it was this.
            () = ended.next() => {}
            () = sleep(pause) => {}
        }
        let remaining = Duration::try_from(lease.remaining(services)).unwrap_or_default();
        if remaining.is_zero() {
            return;
        }
        match timeout(remaining, lease.renew(services)).await {
            Ok(Ok(true)) => pause = heartbeat,
            // A queue that gives no response cannot be asked whether another worker has the work.
            Ok(Ok(false)) | Err(_) => return,
            Ok(Err(error)) => {
                tracing::warn!(run = %claim.run(), %error, "could not renew the lease of a run");
                pause = RETRY_AFTER;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::Arc};

    use labdata_application::work::claim_work::claim_work;
    use labdata_domain::work::{FreeSlots, WORK_LEASE};
    use labdata_memory::FixedClock;

    use super::*;
    use crate::testing::{actor, in_memory_at, queue_run, run_context};

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_stood_still_past_its_lease_has_lost_its_work() {
        let clock = Arc::new(FixedClock::default());
        let services = in_memory_at(Arc::clone(&clock));
        let actor = actor(&services).await;
        queue_run(&services, &actor).await;
        let claimed = claim_work(&services, &run_context(), FreeSlots::for_any(1)).await;
        let claim = claimed.unwrap().remove(0).claim;
        let lease = WorkLease::since(time::Duration::ZERO, claim);
        let mut holding = pin!(until_lost(&services, claim, lease));
        let heartbeat = Duration::try_from(WORK_HEARTBEAT).unwrap();
        // A clock that is set takes nothing from it.
        clock.set(labdata_ports::Clock::now(&*clock) + time::Duration::DAY);
        assert!(timeout(3 * heartbeat, &mut holding).await.is_err());
        clock.advance(WORK_LEASE);
        assert!(timeout(2 * heartbeat, &mut holding).await.is_ok());
    }
}
