//! Renews the lease of work while its script runs.

use std::time::Duration;

use labdata_application::{Ports, work::renew_lease::WorkLease};
use labdata_domain::work::RUN_HEARTBEAT;
use tokio::time::sleep;

use super::workload::Workload;

/// Pause after a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Renews the lease. Returns once the worker has lost the work: it was cancelled or ended, another
/// worker has it, or the lease may have ended while the queue was unavailable.
pub(super) async fn until_lost<W: Workload>(ports: &Ports, workload: &W, claimed: &W::Claimed) {
    let mut ended = workload.watch_ended(ports);
    let mut lease = WorkLease::new(ports, workload.claim_of(claimed));
    let heartbeat = Duration::try_from(RUN_HEARTBEAT).unwrap_or_default();
    let mut pause = heartbeat;
    loop {
        tokio::select! {
            () = ended.next() => {}
            () = sleep(pause) => {}
        }
        match lease.renew(ports).await {
            Ok(true) => pause = heartbeat,
            Ok(false) => return,
            Err(error) => {
                let run = workload.run_of(claimed);
                tracing::warn!(%run, %error, "could not renew the lease of a run");
                pause = RETRY_AFTER;
            }
        }
        if lease.has_expired(ports) {
            return;
        }
    }
}
