//! Version that predicts while a newer one is prepared.

use time::{Duration, OffsetDateTime};

use crate::models::ModelVersion;

/// Maximum time for which a version predicts although a newer one is active.
pub const TAKEOVER_LIMIT: Duration = Duration::minutes(2);

/// Version that predicted last, on one server.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedLast {
    /// The version.
    pub version: ModelVersion,
    /// The number of another version that was found active since, and when it was first found.
    active_since: Option<(u32, OffsetDateTime)>,
}

impl PredictedLast {
    /// Records that the version predicted.
    #[must_use]
    pub const fn new(version: ModelVersion) -> Self {
        Self {
            version,
            active_since: None,
        }
    }

    /// Returns true if the version predicts instead of the active one as long as that is not prepared: a
    /// newer version takes over when it is prepared, after [`TAKEOVER_LIMIT`] at the latest. An older one was
    /// activated because the newer shall not predict, so it takes over at once.
    pub fn stands_in_for(&mut self, active: &ModelVersion, now: OffsetDateTime) -> bool {
        // An older version becomes active only on request, so the newer one must stop at once.
        if active.number <= self.version.number {
            return false;
        }
        let since = match self.active_since {
            // Yet another version has to be loaded, too, so the limit starts again with it.
            Some((number, since)) if number == active.number => since,
            _ => now,
        };
        self.active_since = Some((active.number, since));
        now - since < TAKEOVER_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::record::tests::pending;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn version(number: u32) -> ModelVersion {
        ModelVersion {
            number,
            ..pending()
        }
    }

    #[test]
    fn a_newer_version_takes_over_after_some_minutes_at_the_latest() {
        let mut last = PredictedLast::new(version(1));
        assert!(!last.stands_in_for(&version(1), NOW));
        assert!(last.stands_in_for(&version(2), NOW));
        assert!(last.stands_in_for(&version(2), NOW + TAKEOVER_LIMIT / 2));
        assert!(!last.stands_in_for(&version(2), NOW + TAKEOVER_LIMIT));
        assert!(last.stands_in_for(&version(3), NOW + TAKEOVER_LIMIT));
    }

    #[test]
    fn an_older_version_takes_over_at_once() {
        let mut last = PredictedLast::new(version(2));
        assert!(!last.stands_in_for(&version(1), NOW));
    }
}
