//! Renews and gives up the lease of work.

use labdata_domain::work::WORK_LEASE;
use labdata_ports::work::WorkClaim;
use time::Duration;

use crate::{Error, Services};

/// A worker's lease, which it renews while it works.
#[derive(Clone, Copy, Debug)]
pub struct WorkLease {
    claim: WorkClaim,
    /// When it ends at the earliest, since a fixed moment of this process: its clock may be set.
    ends: Duration,
}

impl WorkLease {
    /// The lease of work that was claimed, or renewed, by a call that began at `asked`.
    #[must_use]
    pub fn since(asked: Duration, claim: WorkClaim) -> Self {
        Self {
            claim,
            ends: asked + WORK_LEASE,
        }
    }

    /// Extends the lease to [`WORK_LEASE`] from now. Returns false if the worker has lost the work.
    ///
    /// # Errors
    /// Errors of the queue; the lease then retains its end.
    pub async fn renew(&mut self, services: &Services) -> Result<bool, Error> {
        // Read before the query: a slow one must not make this worker believe in a longer lease.
        let ends = services.clock.elapsed() + WORK_LEASE;
        let held = services.work.renew(self.claim, WORK_LEASE).await?;
        if held {
            self.ends = ends;
        }
        Ok(held)
    }

    /// Returns the time for which the work is certainly this worker's; none if another may have it.
    #[must_use]
    pub fn remaining(&self, services: &Services) -> Duration {
        (self.ends - services.clock.elapsed()).max(Duration::ZERO)
    }
}

/// Ends the lease now, so that the next sweep requeues or fails the work. Counts as a lost worker.
///
/// # Errors
/// Errors of the queue; the lease then ends by itself.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn give_up(services: &Services, claim: WorkClaim) -> Result<(), Error> {
    services.work.renew(claim, Duration::ZERO).await?;
    Ok(())
}
