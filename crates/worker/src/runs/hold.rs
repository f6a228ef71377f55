//! Holds a run under its lease.

use std::time::Duration;

use labdata_application::Ports;
use labdata_domain::runs::{RUN_HEARTBEAT, RUN_LEASE};
use labdata_ports::runs::{RunClaim, RunNews};
use tokio::time::sleep;

/// How soon a renewal that failed is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Renews the lease of a run, and returns once the run is the worker's no more: it was cancelled
/// or ended, another worker has it, or the lease may have ended while the queue did not answer.
pub(super) async fn until_lost(ports: &Ports, claim: RunClaim) {
    let mut ended = ports.runs.subscribe(RunNews::Ended);
    let mut held_until = ports.clock.now() + RUN_LEASE;
    let mut pause = seconds(RUN_HEARTBEAT);
    loop {
        tokio::select! {
            () = ended.next() => {}
            () = sleep(pause) => {}
        }
        let now = ports.clock.now();
        match ports.runs.renew(claim, now + RUN_LEASE).await {
            Ok(true) => {
                held_until = now + RUN_LEASE;
                pause = seconds(RUN_HEARTBEAT);
            }
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(execution = %claim.execution, %error, "could not renew the lease of a run");
                pause = TRY_AGAIN;
            }
        }
        if held_until <= ports.clock.now() {
            return;
        }
    }
}

fn seconds(duration: time::Duration) -> Duration {
    duration.try_into().unwrap_or_default()
}
