//! Renews and gives up the lease of work.

use labdata_domain::work::WORK_LEASE;
use labdata_ports::work::WorkClaim;
use time::{Duration, OffsetDateTime};

use crate::{Error, Services};

/// A worker's lease, which it renews while it works.
#[derive(Clone, Copy, Debug)]
pub struct WorkLease {
    claim: WorkClaim,
    /// When it ends at the earliest, by the clock of this server.
    expires_at: OffsetDateTime,
}

impl WorkLease {
    /// The lease of work that was just claimed.
    #[must_use]
    pub fn new(ports: &Services, claim: WorkClaim) -> Self {
        Self {
            claim,
            expires_at: ports.clock.now() + WORK_LEASE,
        }
    }

    /// Extends the lease to [`WORK_LEASE`] from now. Returns false if the worker has lost the work.
    ///
    /// # Errors
    /// Errors of the queue; the lease then retains its end.
    pub async fn renew(&mut self, ports: &Services) -> Result<bool, Error> {
        // Read before the query: a slow one must not make this worker believe in a longer lease.
        let expires_at = ports.clock.now() + WORK_LEASE;
        let held = ports.work.renew(self.claim, WORK_LEASE).await?;
        if held {
            self.expires_at = expires_at;
        }
        Ok(held)
    }

    /// Returns true if the lease may have ended, so that another worker may have the work.
    #[must_use]
    pub fn has_expired(&self, ports: &Services) -> bool {
        self.expires_at <= ports.clock.now()
    }
}

/// Ends the lease now, so that the next sweep requeues or fails the work. Counts as a lost worker.
///
/// # Errors
/// Errors of the queue; the lease then ends by itself.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn give_up(ports: &Services, claim: WorkClaim) -> Result<(), Error> {
    ports.work.renew(claim, Duration::ZERO).await?;
    Ok(())
}
