//! Leases: a worker's hold on work, and what follows when a worker is lost.

use std::collections::BTreeMap;

use time::{Duration, OffsetDateTime};

use super::{MAX_LOST_WORKERS, WORK_LEASE, WorkId};

/// A worker's hold on work. It ends unless the worker renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Number of the claim, starting at 1. A later claim of the same work has a greater one.
    pub attempt: u32,
    /// When the hold ends by the clock of the store, which may be set at any moment: no other clock judges it.
    /// Each renewal changes it.
    pub expires_at: OffsetDateTime,
}

impl Lease {
    /// End of a lease that its holder gave up.
    pub const GIVEN_UP: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    /// Returns true if the claim with that number holds the work. A hold past its end counts until the
    /// sweeper takes the work away.
    #[must_use]
    pub const fn is_held_by(&self, attempt: u32) -> bool {
        self.attempt == attempt
    }

    /// Returns true if its holder gave it up, so that nothing has to be waited for.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.expires_at == Self::GIVEN_UP
    }
}

/// Leases as one sweeper has seen them. A lease has ended when it was not renewed for its length by the
/// sweeper's own steady clock, so that no clock that is set takes work from a live worker.
#[derive(Debug, Default)]
pub struct LeaseWatch {
    /// Each lease, and when it was first seen.
    seen: BTreeMap<WorkId, (Lease, Duration)>,
}

impl LeaseWatch {
    /// Returns the leases that have ended, of all that exist. The store was asked for them at `asked`, and
    /// had responded by `responded`, both times since a fixed moment.
    pub fn ended(
        &mut self,
        leases: impl IntoIterator<Item = (WorkId, Lease)>,
        asked: Duration,
        responded: Duration,
    ) -> Vec<WorkId> {
        let mut seen = BTreeMap::new();
        let mut ended = Vec::new();
        for (work, lease) in leases {
            let since = match self.seen.get(&work) {
                Some((same, since)) if *same == lease => *since,
                // It may have been renewed until the response.
                _ => responded,
            };
            if lease.is_given_up() || asked - since >= WORK_LEASE {
                ended.push(work);
            }
            seen.insert(work, (lease, since));
        }
        self.seen = seen;
        ended
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
    use uuid::Uuid;

    use super::*;
    use crate::ids::ExecutionId;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::DAY);

    fn lease(expires_at: OffsetDateTime) -> [(WorkId, Lease); 1] {
        let work = WorkId::Execution(ExecutionId::new(Uuid::nil()));
        let attempt = 2;
        [(
            work,
            Lease {
                attempt,
                expires_at,
            },
        )]
    }

    /// Returns how many leases have ended at that second.
    fn ended(watch: &mut LeaseWatch, expires_at: OffsetDateTime, second: i64) -> usize {
        let now = Duration::seconds(second);
        watch.ended(lease(expires_at), now, now).len()
    }

    #[test]
    fn a_lease_ends_when_it_was_seen_unchanged_for_its_length() {
        let mut watch = LeaseWatch::default();
        let found = [0, 19, 20, 21].map(|second| ended(&mut watch, NOW, second));
        assert_eq!(found, [0, 0, 1, 1]);
        // It was renewed after all.
        let renewed = NOW + Duration::SECOND;
        let found = [22, 41, 42].map(|second| ended(&mut watch, renewed, second));
        assert_eq!(found, [0, 0, 1]);
    }

    #[test]
    fn a_clock_that_is_set_ends_no_lease_that_is_renewed() {
        let mut watch = LeaseWatch::default();
        for second in 0..100 {
            let step = [Duration::ZERO, Duration::HOUR, -Duration::HOUR][second % 3];
            let second = i64::try_from(second).unwrap();
            let expires_at = NOW + step + Duration::seconds(second - second % 5);
            assert_eq!(ended(&mut watch, expires_at, second), 0, "{second}");
        }
    }

    #[test]
    fn the_time_that_a_response_takes_does_not_count() {
        let mut watch = LeaseWatch::default();
        let [asked, responded] = [0, 30].map(Duration::seconds);
        assert_eq!(watch.ended(lease(NOW), asked, responded), []);
        let asked = Duration::seconds(49);
        assert_eq!(watch.ended(lease(NOW), asked, asked), []);
    }

    #[test]
    fn a_lease_that_was_given_up_has_ended_at_once() {
        assert_eq!(ended(&mut LeaseWatch::default(), Lease::GIVEN_UP, 0), 1);
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
