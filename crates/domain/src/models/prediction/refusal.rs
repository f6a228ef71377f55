//! Reasons why a model does not predict.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Error: the model has no version that responds to predictions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model \"{0}\" has no active version: it can predict once a training is ready, or a ready \
     version is activated"
)]
pub struct NoActiveVersion(pub String);

impl Refuse for NoActiveVersion {
    fn code(&self) -> ErrorCode {
        ErrorCode::NoActiveVersion
    }
}

/// Reason why a model does not predict at the moment. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredictionDelay {
    /// Its packages are being installed, or it is being loaded.
    #[error(
        "the model is being prepared: the first prediction takes longer; try again in {} s",
        self.retry_after_seconds()
    )]
    Preparing,
    /// As many models predict as may at a time, or too many predictions wait.
    #[error(
        "too many predictions are under way: try again in {} s",
        self.retry_after_seconds()
    )]
    Busy,
    /// It failed.
    #[error("the model does not respond: {0}")]
    Failed(ModelFailure),
    /// The packages that models need could not be installed.
    #[error(
        "this server cannot run models now: their packages could not be installed; its log says why"
    )]
    PackagesNotInstalled,
    /// The server lacks something else.
    #[error("this server cannot run models now: {0}")]
    Unavailable(String),
}

impl Refuse for PredictionDelay {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Preparing => ErrorCode::ModelPreparing,
            Self::Busy => ErrorCode::PredictionBusy,
            Self::Failed(_) => ErrorCode::PredictionFailed,
            Self::PackagesNotInstalled | Self::Unavailable(_) => ErrorCode::PredictionUnavailable,
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Unavailable
    }

    fn retry_after_seconds(&self) -> Option<u32> {
        Some(Self::retry_after_seconds(self))
    }
}

/// Failure of a model that predicts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelFailure {
    /// Its process ended.
    #[error("its process ended; the next prediction starts another")]
    Ended,
    /// Its process needed too much memory.
    #[error(
        "it needs more memory than it may use: send fewer rows at once, or train it with a lower \
         quality preset"
    )]
    Memory,
    /// It did not respond in time.
    #[error("it took too long; send fewer rows at once")]
    TooSlow,
    /// Its response is none.
    #[error("its response is invalid; train it again")]
    InvalidResponse,
    /// It cannot be loaded, as its process reports.
    #[error("{0}")]
    Reported(String),
}

impl PredictionDelay {
    /// Returns the time after which another try makes sense.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> u32 {
        match self {
            Self::Busy => 2,
            Self::Preparing | Self::Failed(_) => 5,
            Self::PackagesNotInstalled | Self::Unavailable(_) => 60,
        }
    }
}
