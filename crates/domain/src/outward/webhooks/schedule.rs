//! When a delivery is attempted, and when it is given up.

use time::{Duration, OffsetDateTime};

use super::outcome::{DeliveryOutcome, stored_error};

/// Time in which a receiver responds.
pub const ATTEMPT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15);

/// Time after which a delivery is given up, counted from its first attempt or since it was sent again.
pub const DELIVERY_TIME: Duration = Duration::days(3);

/// Pauses after failed attempts. The last one repeats.
const PAUSES: [Duration; 9] = [
    Duration::seconds(5),
    Duration::seconds(30),
    Duration::minutes(2),
    Duration::minutes(10),
    Duration::minutes(30),
    Duration::hours(1),
    Duration::hours(2),
    Duration::hours(4),
    Duration::hours(8),
];

/// Status with which a receiver says that it wants no further deliveries.
const GONE: u16 = 410;

/// Result of a request to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// The receiver answered with this status.
    Responded(u16),
    /// There was no response, for this reason.
    Failed(String),
}

/// An attempt at a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number since the delivery was made or sent again, starting at 1.
    pub number: u32,
    /// Time at which the delivery was made or sent again.
    pub started_at: OffsetDateTime,
}

impl Attempt {
    /// The outcome for a delivery that is not worth an attempt, because its time is over; `None` for any other.
    #[must_use]
    pub fn expired(self, now: OffsetDateTime) -> Option<DeliveryOutcome> {
        // A worker that was away for days still tries once.
        (self.number > 1 && now - self.started_at > DELIVERY_TIME + Duration::HOUR).then(|| {
            DeliveryOutcome::Failed {
                at: now,
                status: None,
                error: "it was not delivered within three days".to_owned(),
                gone: false,
            }
        })
    }

    /// The outcome of a request that ended at that time.
    #[must_use]
    pub fn outcome(self, result: AttemptResult, now: OffsetDateTime) -> DeliveryOutcome {
        let (status, error) = match result {
            AttemptResult::Responded(status @ 200..=299) => {
                return DeliveryOutcome::Delivered { at: now, status };
            }
            AttemptResult::Responded(status @ 300..=399) => (
                Some(status),
                format!("the receiver answered {status}: redirects are not followed"),
            ),
            AttemptResult::Responded(status) => {
                (Some(status), format!("the receiver answered {status}"))
            }
            AttemptResult::Failed(reason) => (None, stored_error(&reason)),
        };
        let gone = status == Some(GONE);
        match self.next(now) {
            Some(due_at) if !gone => DeliveryOutcome::Retry {
                at: now,
                due_at,
                status,
                error,
            },
            _ => DeliveryOutcome::Failed {
                at: now,
                status,
                error,
                gone,
            },
        }
    }

    /// Time of the next attempt after one that failed now; `None` if there is none.
    fn next(self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let end = self.started_at + DELIVERY_TIME;
        let index = usize::try_from(self.number.saturating_sub(1)).unwrap_or(usize::MAX);
        let pause = PAUSES.get(index).or(PAUSES.last()).copied()?;
        // The last attempt is at the very end, however long the pauses before.
        (now < end).then(|| (now + pause).min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn attempt(number: u32) -> Attempt {
        Attempt {
            number,
            started_at: START,
        }
    }

    /// Times of the attempts of a delivery whose receiver is down, in seconds since the first.
    fn attempts() -> Vec<i64> {
        let (mut now, mut number) = (START, 1);
        let mut times = Vec::new();
        loop {
            times.push((now - START).whole_seconds());
            let result = AttemptResult::Failed("refused".to_owned());
            match attempt(number).outcome(result, now) {
                DeliveryOutcome::Retry { due_at, .. } => (now, number) = (due_at, number + 1),
                DeliveryOutcome::Failed { gone, .. } => {
                    assert!(!gone);
                    return times;
                }
                DeliveryOutcome::Delivered { .. } => panic!("it failed"),
            }
        }
    }

    #[test]
    fn a_receiver_that_is_down_is_tried_for_three_days_with_growing_pauses() {
        let times = attempts();
        assert_eq!(times[..4], [0, 5, 35, 155]);
        assert_eq!(times.last(), Some(&DELIVERY_TIME.whole_seconds()));
        let pauses: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The last one is cut off by the end.
        let (_, growing) = pauses.split_last().unwrap();
        assert!(growing.is_sorted(), "{pauses:?}");
        assert!(times.len() < 20, "{times:?}");
    }

    #[test]
    fn a_status_of_success_delivers_and_no_other() {
        for status in [200, 204, 299] {
            let outcome = attempt(1).outcome(AttemptResult::Responded(status), START);
            assert_eq!(outcome, DeliveryOutcome::Delivered { at: START, status });
        }
        for status in [199, 301, 302, 308, 400, 404, 429, 500, 503] {
            let outcome = attempt(1).outcome(AttemptResult::Responded(status), START);
            let is_retry = matches!(outcome, DeliveryOutcome::Retry { due_at, .. }
                if due_at == START + Duration::seconds(5));
            assert!(is_retry, "{status}: {outcome:?}");
        }
    }

    #[test]
    fn gone_is_final() {
        let outcome = attempt(1).outcome(AttemptResult::Responded(410), START);
        assert!(
            matches!(outcome, DeliveryOutcome::Failed { gone: true, .. }),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_late_worker_tries_once_and_not_for_ever() {
        let late = START + Duration::days(9);
        assert_eq!(attempt(1).expired(late), None);
        assert!(attempt(2).expired(late).is_some());
        assert_eq!(attempt(12).expired(START + DELIVERY_TIME), None);
        let outcome = attempt(1).outcome(AttemptResult::Responded(500), late);
        assert!(matches!(
            outcome,
            DeliveryOutcome::Failed { gone: false, .. }
        ));
    }
}
