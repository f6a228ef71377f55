//! Renews the lease of a run while its script runs.

use std::time::Duration;

use labdata_application::{
    Ports,
    runs::{renew_lease::RunLease, watch_runs::watch_ended_runs},
};
use labdata_domain::runs::RUN_HEARTBEAT;
use labdata_ports::runs::RunClaim;
use tokio::time::sleep;

/// Pause after a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Renews the lease of a run. Returns once the worker has lost the run: it was cancelled or ended,
/// another worker has it, or the lease may have ended while the queue was unavailable.
pub(super) async fn until_lost(ports: &Ports, claim: RunClaim) {
    let mut ended = watch_ended_runs(ports);
    let mut lease = RunLease::new(ports, claim);
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
                tracing::warn!(execution = %claim.execution, %error, "could not renew the lease of a run");
                pause = RETRY_AFTER;
            }
        }
        if lease.has_expired(ports) {
            return;
        }
    }
}
