//! Renews the lease of work while its script runs.

use std::time::Duration;

use labdata_application::{Services, work::renew_lease::WorkLease};
use labdata_domain::work::WORK_HEARTBEAT;
use labdata_ports::work::{WorkClaim, WorkNews};
use tokio::time::sleep;

/// Pause after a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Renews the lease. Returns once the worker has lost the work: it was cancelled or ended, another
/// worker has it, or the lease may have ended while the queue was unavailable.
pub(super) async fn until_lost(ports: &Services, claim: WorkClaim) {
    let mut ended = ports.work.subscribe(claim.work.kind(), WorkNews::Ended);
    let mut lease = WorkLease::new(ports, claim);
    let heartbeat = Duration::try_from(WORK_HEARTBEAT).unwrap_or_default();
    let mut pause = heartbeat;
    loop {
        tokio::select! {
            // Notifies of any work of the kind; the renewal finds out whether it was this.
            () = ended.next() => {}
            () = sleep(pause) => {}
        }
        match lease.renew(ports).await {
            Ok(true) => pause = heartbeat,
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(run = %claim.run(), %error, "could not renew the lease of a run");
                pause = RETRY_AFTER;
            }
        }
        if lease.has_expired(ports) {
            return;
        }
    }
}
