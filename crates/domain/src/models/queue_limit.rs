//! Limit of an organization's trainings that wait for a worker.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Maximum number of trainings of an organization that wait for a worker. A training that returns to
/// the queue is never refused, so there can be a few more.
pub const MAX_PENDING_TRAININGS: u64 = 100;

/// Time after which a refused training is to be tried again, in seconds.
const TRY_AGAIN: u32 = 60;

/// Refusal of a training because too many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} trainings of the organization wait for a worker, and no more may: try again when one has \
     started, or cancel one",
    MAX_PENDING_TRAININGS
)]
pub struct TrainingQueueFull;

impl Refuse for TrainingQueueFull {
    fn code(&self) -> ErrorCode {
        ErrorCode::TrainingQueueFull
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Busy
    }

    fn retry_after_seconds(&self) -> Option<u32> {
        Some(Self::retry_after_seconds(*self))
    }
}

impl TrainingQueueFull {
    /// Seconds after which a training may be accepted.
    #[must_use]
    pub const fn retry_after_seconds(self) -> u32 {
        TRY_AGAIN
    }
}

/// Checks that an organization may queue another training beside its `pending` ones.
///
/// # Errors
/// [`TrainingQueueFull`].
pub const fn check_pending_trainings(pending: u64) -> Result<(), TrainingQueueFull> {
    if pending < MAX_PENDING_TRAININGS {
        Ok(())
    } else {
        Err(TrainingQueueFull)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_in_the_queue_is_given_and_no_further_one() {
        assert_eq!(check_pending_trainings(MAX_PENDING_TRAININGS - 1), Ok(()));
        for pending in [MAX_PENDING_TRAININGS, MAX_PENDING_TRAININGS + 1] {
            assert_eq!(check_pending_trainings(pending), Err(TrainingQueueFull));
        }
        let refusal = TrainingQueueFull.to_string();
        assert!(refusal.starts_with("100 trainings"), "{refusal}");
    }
}
