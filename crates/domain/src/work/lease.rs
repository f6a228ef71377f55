//! Leases: a worker's hold on work, and what follows when a worker is lost.

use time::OffsetDateTime;

use super::MAX_LOST_WORKERS;

/// A worker's hold on work. It ends unless the worker renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Number of the claim, starting at 1. A later claim of the same work has a greater one.
    pub attempt: u32,
    /// When the hold ends.
    pub expires_at: OffsetDateTime,
}

impl Lease {
    /// Returns true if the claim with that number holds the work. A hold past its end counts until the
    /// sweeper takes the work away.
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

/// Returns true if work that has now lost that many workers is tried again. Otherwise it fails.
#[must_use]
pub const fn has_another_attempt(lost_workers: u32) -> bool {
    // A script that takes its worker down would otherwise do so to one worker after the other.
    lost_workers < MAX_LOST_WORKERS
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
    fn only_the_last_claim_holds_work() {
        let lease = Lease {
            attempt: 2,
            expires_at: NOW,
        };
        assert!(lease.is_held_by(2));
        assert!(!lease.is_held_by(1) && !lease.is_held_by(3));
    }

    #[test]
    fn work_gets_a_second_worker_and_no_third() {
        assert!(has_another_attempt(1));
        assert!(!has_another_attempt(2) && !has_another_attempt(3));
    }
}
