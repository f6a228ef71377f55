//! Renews and gives up the lease of a run or a training.

use async_trait::async_trait;
use labdata_domain::work::RUN_LEASE;
use labdata_ports::{PortError, work::RunClaim};
use time::OffsetDateTime;

use crate::{Error, Ports};

/// Claim to work under a lease.
#[async_trait]
pub trait LeasedClaim: Copy + Send + Sync {
    /// Extends the lease to `until`; returns false if the work was taken from the holder.
    ///
    /// # Errors
    /// Errors of the queue.
    async fn hold(self, ports: &Ports, until: OffsetDateTime) -> Result<bool, PortError>;
}

#[async_trait]
impl LeasedClaim for RunClaim {
    async fn hold(self, ports: &Ports, until: OffsetDateTime) -> Result<bool, PortError> {
        ports.runs.renew(self, until).await
    }
}

/// A worker's lease, which it renews while it works.
#[derive(Clone, Copy, Debug)]
pub struct WorkLease<C> {
    claim: C,
    expires_at: OffsetDateTime,
}

impl<C: LeasedClaim> WorkLease<C> {
    /// The lease of work that was just claimed.
    #[must_use]
    pub fn new(ports: &Ports, claim: C) -> Self {
        Self {
            claim,
            expires_at: ports.clock.now() + RUN_LEASE,
        }
    }

    /// Extends the lease to [`RUN_LEASE`] from now. Returns false if the worker has lost the work.
    ///
    /// # Errors
    /// Errors of the queue; the lease then retains its end.
    pub async fn renew(&mut self, ports: &Ports) -> Result<bool, Error> {
        // Read before the query: a slow one must not make this worker believe in a longer lease.
        let expires_at = ports.clock.now() + RUN_LEASE;
        let held = self.claim.hold(ports, expires_at).await?;
        if held {
            self.expires_at = expires_at;
        }
        Ok(held)
    }

    /// Returns true if the lease has ended, so that another worker may have the work.
    #[must_use]
    pub fn has_expired(&self, ports: &Ports) -> bool {
        self.expires_at <= ports.clock.now()
    }
}

/// Ends the lease now, so that the next sweep requeues or fails the work. Counts as a lost worker.
///
/// # Errors
/// Errors of the queue; the lease then ends by itself.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn give_up(ports: &Ports, claim: impl LeasedClaim) -> Result<(), Error> {
    // The next sweep finds the ended lease and returns the run to the queue.
    claim.hold(ports, ports.clock.now()).await?;
    Ok(())
}
