//! The outbox of e-mails: claims, retries, and when an e-mail is given up.

use time::{Duration, OffsetDateTime};

/// Number of attempts after which an e-mail is given up.
pub const MAX_EMAIL_TRIES: u32 = 8;

/// Age at which an e-mail that was never sent is given up. Without it, the first mail server of a
/// platform would send all notices of the months before.
pub const MAX_EMAIL_AGE: Duration = Duration::days(1);

/// Wait before the first retry. Each further one waits twice as long.
const FIRST_RETRY: Duration = Duration::seconds(5);

/// Longest stored error message, in characters.
const MAX_ERROR: usize = 1_000;

/// Result of one attempt at a claimed e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmailOutcome {
    /// The mail server accepted it.
    Sent {
        /// When.
        at: OffsetDateTime,
    },
    /// It will be tried again.
    Retry {
        /// When.
        at: OffsetDateTime,
        /// Reason, for operators.
        error: String,
    },
    /// It is given up.
    Dead {
        /// When.
        at: OffsetDateTime,
        /// Reason, for operators.
        error: String,
    },
}

impl EmailOutcome {
    /// Name of the e-mail's state after this outcome, in the database.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::Retry { .. } => "pending",
            Self::Dead { .. } => "dead",
        }
    }

    /// The outcome for an e-mail that is not worth an attempt, because it is too old or its workers
    /// died too often; `None` for any other. `tries` is the number of this attempt.
    #[must_use]
    pub fn before_attempt(
        tries: u32,
        created_at: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Option<Self> {
        // A worker that dies while it sends reports no failure, so claims are counted, not failures.
        if tries > MAX_EMAIL_TRIES {
            Some(Self::refused("its workers died too often", now))
        } else if now - created_at > MAX_EMAIL_AGE {
            Some(Self::refused("it was not sent within a day", now))
        } else {
            None
        }
    }

    /// The outcome of an attempt that the mail server refused for good.
    #[must_use]
    pub fn refused(error: &str, now: OffsetDateTime) -> Self {
        Self::Dead {
            at: now,
            error: stored_error(error),
        }
    }

    /// The outcome of an attempt that failed but may succeed later. `tries` is its number.
    #[must_use]
    pub fn failed(tries: u32, error: &str, now: OffsetDateTime) -> Self {
        if tries >= MAX_EMAIL_TRIES {
            return Self::refused(error, now);
        }
        Self::Retry {
            // Cannot overflow: the eighth try is the last, so the exponent is at most 6.
            at: now + FIRST_RETRY * 2_i32.pow(tries.saturating_sub(1)),
            error: stored_error(error),
        }
    }
}

/// Shortens an error message and removes NUL characters: mail servers may send anything.
fn stored_error(error: &str) -> String {
    // Mail servers may send any bytes, and PostgreSQL stores no NUL.
    let characters = error.chars().filter(|character| *character != '\0');
    characters.take(MAX_ERROR).collect()
}

/// State of an e-mail in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmailState {
    /// It waits to be sent, or a worker has claimed it.
    Pending {
        /// Number of claims so far. The last claim alone may settle the e-mail.
        tries: u32,
        /// When it may be claimed: after its lease if it is claimed.
        due_at: OffsetDateTime,
    },
    /// The mail server accepted it.
    Sent {
        /// When.
        at: OffsetDateTime,
    },
    /// It was given up.
    Dead {
        /// When.
        at: OffsetDateTime,
        /// Reason, for operators.
        error: String,
    },
}

impl EmailState {
    /// The state of an e-mail that was just queued.
    #[must_use]
    pub const fn queued(now: OffsetDateTime) -> Self {
        Self::Pending {
            tries: 0,
            due_at: now,
        }
    }

    /// Since when the e-mail may be claimed; `None` if it may not.
    #[must_use]
    pub fn due_since(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        match self {
            Self::Pending { due_at, .. } if *due_at <= now => Some(*due_at),
            _ => None,
        }
    }

    /// Claims an e-mail that is due, until the lease ends; with the number of the claim, which
    /// starts at 1. `None` unless it is due.
    #[must_use]
    pub fn claim(self, now: OffsetDateTime, lease: Duration) -> Option<(Self, u32)> {
        match self {
            Self::Pending { tries, due_at } if due_at <= now => {
                let tries = tries.saturating_add(1);
                // If the claimer dies, the e-mail is due again when the lease ends, without a sweeper.
                let due_at = now + lease;
                Some((Self::Pending { tries, due_at }, tries))
            }
            _ => None,
        }
    }

    /// Records the outcome of the claim with that number; `None` unless it is the last claim of an
    /// e-mail that is still pending.
    #[must_use]
    pub fn settle(self, claim: u32, outcome: &EmailOutcome) -> Option<Self> {
        match self {
            // A claim that outlived its lease may have been taken over; then the later claim decides.
            Self::Pending { tries, .. } if tries == claim => Some(match outcome {
                EmailOutcome::Sent { at } => Self::Sent { at: *at },
                EmailOutcome::Retry { at, .. } => Self::Pending { tries, due_at: *at },
                EmailOutcome::Dead { at, error } => Self::Dead {
                    at: *at,
                    error: error.clone(),
                },
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const LEASE: Duration = Duration::minutes(1);

    #[test]
    fn eight_tries_five_seconds_apart_and_doubling() {
        let waits: Vec<i64> = (1..)
            .map_while(|tries| match EmailOutcome::failed(tries, "", NOW) {
                EmailOutcome::Retry { at, .. } => Some((at - NOW).whole_seconds()),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320]);
        assert_eq!(
            EmailOutcome::failed(8, "full", NOW),
            EmailOutcome::refused("full", NOW)
        );
    }

    #[test]
    fn an_old_email_and_one_that_kills_workers_are_given_up_unsent() {
        let before = |tries, age| EmailOutcome::before_attempt(tries, NOW - age, NOW);
        assert_eq!(before(1, Duration::ZERO), None);
        assert_eq!(before(MAX_EMAIL_TRIES, MAX_EMAIL_AGE), None);
        let dead = |error: &str| Some(EmailOutcome::refused(error, NOW));
        assert_eq!(
            before(MAX_EMAIL_TRIES + 1, Duration::ZERO),
            dead("its workers died too often")
        );
        assert_eq!(
            before(1, MAX_EMAIL_AGE + Duration::MICROSECOND),
            dead("it was not sent within a day")
        );
    }

    #[test]
    fn errors_are_stored_without_nul_and_at_most_a_thousand_characters_long() {
        let outcome = EmailOutcome::refused(&format!("a\0b{}", "ü".repeat(2_000)), NOW);
        let EmailOutcome::Dead { error, .. } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(error, format!("ab{}", "ü".repeat(998)));
    }

    #[test]
    fn a_claimed_email_is_due_again_after_its_lease() {
        let queued = EmailState::queued(NOW);
        assert_eq!(queued.clone().claim(NOW - LEASE, LEASE), None);
        assert_eq!(queued.due_since(NOW), Some(NOW));
        let (claimed, first) = queued.claim(NOW, LEASE).unwrap();
        assert_eq!((first, claimed.due_since(NOW)), (1, None));
        assert_eq!(claimed.clone().claim(NOW, LEASE), None);
        let (_, second) = claimed.claim(NOW + LEASE, LEASE).unwrap();
        assert_eq!(second, 2);
    }

    #[test]
    fn only_the_last_claim_of_a_pending_email_settles_it() {
        let sent = EmailOutcome::Sent { at: NOW };
        let (state, _) = EmailState::queued(NOW).claim(NOW, LEASE).unwrap();
        let (state, claim) = state.claim(NOW + LEASE, LEASE).unwrap();
        assert_eq!(state.clone().settle(1, &sent), None);
        let settled = state.clone().settle(claim, &sent).unwrap();
        assert_eq!(settled, EmailState::Sent { at: NOW });
        assert_eq!(
            (sent.status(), settled.due_since(NOW + LEASE)),
            ("sent", None)
        );
        assert_eq!(settled.clone().claim(NOW + LEASE, LEASE), None);
        assert_eq!(settled.settle(claim, &sent), None);
        let refused = EmailOutcome::refused("full", NOW);
        let dead = EmailState::Dead {
            at: NOW,
            error: "full".to_owned(),
        };
        assert_eq!(state.clone().settle(claim, &refused), Some(dead));
        assert_eq!(refused.status(), "dead");
        let retry = EmailOutcome::failed(claim, "busy", NOW);
        assert_eq!(retry.status(), "pending");
        let waiting = state.settle(claim, &retry).unwrap();
        let due_at = NOW + Duration::seconds(10);
        assert_eq!(waiting, EmailState::Pending { tries: 2, due_at });
    }
}
