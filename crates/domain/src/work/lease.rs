//! Leases: a worker's hold on a run, and what follows when a worker is lost.

use time::OffsetDateTime;

use super::{MAX_LOST_WORKERS, RunEnd, WORKER_LOST};

/// A worker's hold on a run. It ends unless the worker renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Number of the claim, starting at 1. A later claim of the same run has a greater one.
    pub attempt: u32,
    /// When the hold ends.
    pub expires_at: OffsetDateTime,
}

impl Lease {
    /// Returns true if the claim with that number holds the run. A hold past its end counts until the
    /// sweeper takes the run away.
    #[must_use]
    pub const fn is_held_by(&self, attempt: u32) -> bool {
        self.attempt == attempt
    }

    /// Returns true if the worker failed to renew it in time.
    #[must_use]
    pub fn has_expired(&self, now: OffsetDateTime) -> bool {
        self.expires_at <= now
    }
}

/// Consequence of losing a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostWorker {
    /// The run returns to the queue for another worker.
    Requeue,
    /// The run has failed.
    Fail(RunEnd),
}

/// The consequence for a run that has now lost that many workers.
#[must_use]
pub fn after_lost_worker(lost_workers: u32) -> LostWorker {
    // A script that takes its worker down would otherwise do so to one worker after the other.
    if lost_workers < MAX_LOST_WORKERS {
        LostWorker::Requeue
    } else {
        LostWorker::Fail(RunEnd::failed(WORKER_LOST))
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    #[test]
    fn a_lease_expires_at_its_end_and_not_before() {
        let lease = Lease {
            attempt: 2,
            expires_at: NOW,
        };
        assert!(lease.has_expired(NOW));
        assert!(!lease.has_expired(NOW - Duration::MICROSECOND));
    }

    #[test]
    fn only_the_last_claim_holds_a_run() {
        let lease = Lease {
            attempt: 2,
            expires_at: NOW,
        };
        assert!(lease.is_held_by(2));
        assert!(!lease.is_held_by(1) && !lease.is_held_by(3));
    }

    #[test]
    fn a_run_gets_a_second_worker_and_no_third() {
        assert_eq!(after_lost_worker(1), LostWorker::Requeue);
        let failed = LostWorker::Fail(RunEnd::failed(WORKER_LOST));
        assert_eq!(after_lost_worker(2), failed);
        assert_eq!(after_lost_worker(3), failed);
    }
}
