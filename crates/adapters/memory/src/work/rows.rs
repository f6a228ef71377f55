//! Records of queued and running runs in memory, of jobs and of trainings.

use labdata_domain::{
    people::run_nonce::RunNonce,
    work::{Lease, LogChunk, LostWorker, after_lost_worker},
};
use time::OffsetDateTime;

/// A run's record in the queue, besides its execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRow {
    pub(crate) claims: Claims,
    /// Nonce that the run exchanges for its key.
    pub(crate) nonce: Option<RunNonce>,
}

impl RunRow {
    /// Ends the lease and removes the nonce.
    pub(crate) fn release(&mut self) {
        self.claims.release();
        self.nonce = None;
    }
}

/// Claims of a run by workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    /// Number of claims so far.
    attempts: u32,
    /// Number of workers that were lost.
    lost_workers: u32,
    lease: Option<Lease>,
}

impl Claims {
    /// Number of the last claim.
    pub(crate) const fn last_attempt(&self) -> u32 {
        self.attempts
    }

    /// The number of a new claim, which holds the run until that time.
    pub(crate) fn claim(&mut self, expires_at: OffsetDateTime) -> u32 {
        self.attempts += 1;
        self.lease = Some(Lease {
            attempt: self.attempts,
            expires_at,
        });
        self.attempts
    }

    /// The lease, if the claim with that number holds it.
    pub(crate) fn lease_mut(&mut self, attempt: u32) -> Option<&mut Lease> {
        self.lease
            .as_mut()
            .filter(|lease| lease.is_held_by(attempt))
    }

    /// Returns true if the claim with that number holds the run.
    pub(crate) fn is_held_by(&self, attempt: u32) -> bool {
        self.lease.is_some_and(|lease| lease.is_held_by(attempt))
    }

    /// Number of the claim that holds the run.
    pub(crate) fn held_attempt(&self) -> Option<u32> {
        self.lease.map(|lease| lease.attempt)
    }

    pub(crate) const fn is_held(&self) -> bool {
        self.lease.is_some()
    }

    /// Returns true if its lease has expired.
    pub(crate) fn is_lost(&self, now: OffsetDateTime) -> bool {
        self.lease.is_some_and(|lease| lease.has_expired(now))
    }

    /// Ends the lease.
    pub(crate) const fn release(&mut self) {
        self.lease = None;
    }

    /// Counts the loss of its worker.
    pub(crate) fn lose_worker(&mut self) -> LostWorker {
        self.lost_workers += 1;
        after_lost_worker(self.lost_workers)
    }
}

/// The retained part of a run's log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) length: u64,
    pub(crate) chunks: Vec<LogChunk>,
}
