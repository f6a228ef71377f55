//! Why a use case refused or failed.

use labdata_domain::{
    conflict::Conflict,
    data::write::Problem,
    models::{NoTrainingBackend, PredictionDelay, TrainingQueueFull},
    notifications::CapReached,
    people::{actor::MissingScope, run_key::NotForRuns},
    storage::InsufficientStorage,
};
use labdata_ports::PortError;

/// The outcome of a use case that did not succeed. Every text but `Internal`'s is for the person
/// who asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No valid key was shown.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The key does not permit it; the text says which scope is missing, or that it is a run's key.
    #[error("{0}")]
    Forbidden(String),
    /// No such thing in the caller's organization.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// No row of that key in the caller's organization.
    #[error("{what} \"{key}\" not found")]
    RowNotFound {
        /// Its role in the request.
        what: &'static str,
        /// Its key.
        key: String,
    },
    /// The request is invalid. Nothing was changed.
    #[error("{0}")]
    Invalid(String),
    /// A data write's problems; nothing was changed.
    #[error("{} problems", .0.len())]
    Problems(Vec<Problem>),
    /// It clashes with what is stored; nothing was changed.
    #[error(transparent)]
    Conflict(Conflict),
    /// It would exceed a size limit.
    #[error("{0}")]
    TooLarge(String),
    /// Others hold what is needed; nothing was changed.
    #[error("busy: try again in {retry_after_seconds} s")]
    Busy {
        /// When to try again.
        retry_after_seconds: u32,
    },
    /// The platform, or the organization's share of it, is fully in use; nothing was changed.
    #[error("everything is in use at the moment: try again in {retry_after_seconds} s")]
    Exhausted {
        /// When to try again.
        retry_after_seconds: u32,
    },
    /// A model does not predict at the moment; nothing was changed.
    #[error(transparent)]
    Delayed(#[from] PredictionDelay),
    /// As many notifications as may be were delivered; nothing was sent.
    #[error(transparent)]
    Capped(CapReached),
    /// No training backend can take work; nothing was queued.
    #[error(transparent)]
    CannotTrain(#[from] NoTrainingBackend),
    /// Too many trainings of the organization wait; nothing was queued.
    #[error(transparent)]
    TrainingQueueFull(#[from] TrainingQueueFull),
    /// There is no room for it; nothing was stored.
    #[error(transparent)]
    InsufficientStorage(InsufficientStorage),
    /// A service behind the platform does not answer.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Anything else; for the log only.
    #[error("internal: {0}")]
    Internal(String),
}

impl From<MissingScope> for Error {
    fn from(missing: MissingScope) -> Self {
        Self::Forbidden(missing.to_string())
    }
}

impl From<NotForRuns> for Error {
    fn from(refusal: NotForRuns) -> Self {
        Self::Forbidden(refusal.to_string())
    }
}

impl From<InsufficientStorage> for Error {
    fn from(refusal: InsufficientStorage) -> Self {
        Self::InsufficientStorage(refusal)
    }
}

impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        match error {
            PortError::NotFound(what) => Self::NotFound(what),
            PortError::Conflict(conflict) => Self::Conflict(conflict),
            PortError::Busy(_) => Self::Busy {
                retry_after_seconds: 1,
            },
            PortError::Exhausted(_) => Self::Exhausted {
                retry_after_seconds: 1,
            },
            PortError::DiskFull(_) => Self::InsufficientStorage(InsufficientStorage::DiskFull),
            PortError::Unavailable(text) => Self::Unavailable(text),
            PortError::Corrupt(text) | PortError::Internal(text) => Self::Internal(text),
        }
    }
}
