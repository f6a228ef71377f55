//! Renews and gives up the lease of a run.

use labdata_domain::runs::RUN_LEASE;
use labdata_ports::runs::RunClaim;
use time::OffsetDateTime;

use crate::{Error, Ports};

/// A worker's lease on a run, which it renews while it works on the run.
#[derive(Clone, Copy, Debug)]
pub struct RunLease {
    claim: RunClaim,
    expires_at: OffsetDateTime,
}

impl RunLease {
    /// The lease of a run that was just claimed.
    #[must_use]
    pub fn new(ports: &Ports, claim: RunClaim) -> Self {
        Self {
            claim,
            expires_at: ports.clock.now() + RUN_LEASE,
        }
    }

    /// Extends the lease to [`RUN_LEASE`] from now. Returns false if the worker has lost the run.
    ///
    /// # Errors
    /// Errors of the queue; the lease then keeps its end.
    pub async fn renew(&mut self, ports: &Ports) -> Result<bool, Error> {
        let expires_at = ports.clock.now() + RUN_LEASE;
        let held = ports.runs.renew(self.claim, expires_at).await?;
        if held {
            self.expires_at = expires_at;
        }
        Ok(held)
    }

    /// Returns true if the lease has ended, so that another worker may have the run.
    #[must_use]
    pub fn has_expired(&self, ports: &Ports) -> bool {
        self.expires_at <= ports.clock.now()
    }
}

/// Ends the lease now, so that the next sweep requeues or fails the run. Counts as a lost worker.
///
/// # Errors
/// Errors of the queue; the lease then ends by itself.
pub async fn give_up_run(ports: &Ports, claim: RunClaim) -> Result<(), Error> {
    let now = ports.clock.now();
    ports.runs.renew(claim, now).await?;
    Ok(())
}
