//! State machine of a model's version.

use time::OffsetDateTime;

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// State of one version of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// It waits for a worker.
    Pending,
    /// Its training runs.
    Training {
        /// When the training started.
        started_at: OffsetDateTime,
    },
    /// It can predict.
    Ready {
        /// When the training started.
        started_at: OffsetDateTime,
        /// When the training ended.
        completed_at: OffsetDateTime,
    },
    /// Its training failed, or the platform gave up on it.
    Failed {
        /// When the training started; `None` if it never did.
        started_at: Option<OffsetDateTime>,
        /// When it failed.
        completed_at: OffsetDateTime,
        /// Error message for the person who requested the training.
        error: String,
    },
    /// A user cancelled its training.
    Cancelled {
        /// When the training started; `None` if it never did.
        started_at: Option<OffsetDateTime>,
        /// When it was cancelled.
        completed_at: OffsetDateTime,
    },
}

/// Error: a model has no training to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no version of this model is pending or training, so there is nothing to cancel")]
pub struct NothingInFlight;

impl Refuse for NothingInFlight {
    fn code(&self) -> ErrorCode {
        ErrorCode::NothingInFlight
    }
}

/// Why a version cannot be activated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActivateError {
    /// The model has no such version.
    #[error("version not found")]
    Unknown(u32),
    /// The version cannot predict.
    #[error("version {number} is {state}: only a ready version can be activated")]
    NotReady {
        /// Number of the version.
        number: u32,
        /// Name of its state.
        state: &'static str,
    },
}

impl Refuse for ActivateError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::NotFound,
            Self::NotReady { .. } => ErrorCode::VersionNotReady,
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::Unknown(_) => RefusalKind::NotFound,
            Self::NotReady { .. } => RefusalKind::Invalid,
        }
    }
}

impl VersionState {
    /// The names of all states.
    pub const NAMES: [&'static str; 5] = ["pending", "training", "ready", "failed", "cancelled"];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Training { .. } => "training",
            Self::Ready { .. } => "ready",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns when the training started.
    #[must_use]
    pub const fn started_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Pending => None,
            Self::Training { started_at } | Self::Ready { started_at, .. } => Some(*started_at),
            Self::Failed { started_at, .. } | Self::Cancelled { started_at, .. } => *started_at,
        }
    }

    /// Returns when the training ended.
    #[must_use]
    pub const fn completed_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Pending | Self::Training { .. } => None,
            Self::Ready { completed_at, .. }
            | Self::Failed { completed_at, .. }
            | Self::Cancelled { completed_at, .. } => Some(*completed_at),
        }
    }

    /// Returns whether the version is still to become ready.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        matches!(self, Self::Pending | Self::Training { .. })
    }

    /// Starts the training; `None` unless the version is pending.
    #[must_use]
    pub fn claim(self, now: OffsetDateTime) -> Option<Self> {
        (self == Self::Pending).then_some(Self::Training { started_at: now })
    }

    /// Returns the version to the queue; `None` unless it is training.
    #[must_use]
    pub fn requeue(self) -> Option<Self> {
        matches!(self, Self::Training { .. }).then_some(Self::Pending)
    }

    /// Records the success of the training; `None` unless it runs.
    #[must_use]
    pub fn succeed(self, now: OffsetDateTime) -> Option<Self> {
        match self {
            // A report that comes after a cancellation has no effect.
            Self::Training { started_at } => Some(Self::Ready {
                started_at,
                completed_at: now,
            }),
            _ => None,
        }
    }

    /// Records a failure; `None` if the version has ended.
    #[must_use]
    pub fn fail(self, error: String, now: OffsetDateTime) -> Option<Self> {
        // An ended version stays as it is, however late a report comes.
        self.is_in_flight().then(|| Self::Failed {
            started_at: self.started_at(),
            completed_at: now,
            error,
        })
    }

    /// Cancels the training; `None` if the version has ended.
    #[must_use]
    pub fn cancel(self, now: OffsetDateTime) -> Option<Self> {
        self.is_in_flight().then(|| Self::Cancelled {
            started_at: self.started_at(),
            completed_at: now,
        })
    }

    /// Checks that version `number`, whose state this is, can be activated.
    ///
    /// # Errors
    /// [`ActivateError::NotReady`].
    pub const fn check_activation(&self, number: u32) -> Result<(), ActivateError> {
        match self {
            Self::Ready { .. } => Ok(()),
            other => Err(ActivateError::NotReady {
                number,
                state: other.as_str(),
            }),
        }
    }
}

/// Returns whether a version becomes active when it is ready: unless a newer one is active, because
/// trainings may end in another order than they were requested.
#[must_use]
pub const fn becomes_active(ready: u32, active: Option<u32>) -> bool {
    match active {
        None => true,
        // Trainings may end out of order; an older version must not replace a newer one.
        Some(active) => ready > active,
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::seconds(seconds)
    }

    fn training() -> VersionState {
        VersionState::Training { started_at: at(1) }
    }

    fn ended() -> [VersionState; 3] {
        [
            VersionState::Ready {
                started_at: at(1),
                completed_at: at(2),
            },
            VersionState::Failed {
                started_at: None,
                completed_at: at(2),
                error: "constant target".to_owned(),
            },
            VersionState::Cancelled {
                started_at: Some(at(1)),
                completed_at: at(2),
            },
        ]
    }

    #[test]
    fn a_pending_version_starts_once() {
        assert_eq!(VersionState::Pending.claim(at(1)), Some(training()));
        assert_eq!(training().claim(at(2)), None);
        assert_eq!(training().requeue(), Some(VersionState::Pending));
        assert_eq!(VersionState::Pending.requeue(), None);
    }

    #[test]
    fn only_a_training_version_becomes_ready() {
        let [ready, ..] = ended();
        assert_eq!(training().succeed(at(2)), Some(ready));
        assert_eq!(VersionState::Pending.succeed(at(2)), None);
    }

    #[test]
    fn an_end_keeps_the_start() {
        let failed = training().fail("no memory".to_owned(), at(5));
        let failed = failed.expect("it was training");
        assert_eq!(failed.started_at(), Some(at(1)));
        assert_eq!(failed.completed_at(), Some(at(5)));
        let cancelled = VersionState::Pending.cancel(at(3)).expect("pending");
        assert_eq!(cancelled.started_at(), None);
        assert_eq!(cancelled.completed_at(), Some(at(3)));
        assert_eq!(training().completed_at(), None);
    }

    #[test]
    fn an_end_is_final() {
        for state in ended() {
            assert!(!state.is_in_flight());
            assert_eq!(state.clone().claim(at(9)), None);
            assert_eq!(state.clone().requeue(), None);
            assert_eq!(state.clone().succeed(at(9)), None);
            assert_eq!(state.clone().fail(String::new(), at(9)), None);
            assert_eq!(state.cancel(at(9)), None);
        }
    }

    #[test]
    fn every_state_has_its_name() {
        let states = [VersionState::Pending, training()];
        let names: Vec<&str> = states
            .iter()
            .chain(&ended())
            .map(VersionState::as_str)
            .collect();
        assert_eq!(names, VersionState::NAMES);
    }

    #[test]
    fn only_a_ready_version_can_be_activated() {
        let [ready, failed, _] = ended();
        assert_eq!(ready.check_activation(3), Ok(()));
        let refusal = failed.check_activation(2).expect_err("failed");
        assert_eq!(
            refusal.to_string(),
            "version 2 is failed: only a ready version can be activated"
        );
        assert!(training().check_activation(1).is_err());
    }

    #[test]
    fn a_ready_version_becomes_active_unless_a_newer_one_is() {
        assert!(becomes_active(1, None));
        assert!(becomes_active(3, Some(2)));
        assert!(!becomes_active(2, Some(3)));
    }
}
