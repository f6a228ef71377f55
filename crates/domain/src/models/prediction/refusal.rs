//! Reasons why a model does not predict.

/// Error: the model has no version that answers predictions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model \"{0}\" has no active version: it can predict once a training is ready, or a ready \
     version is activated"
)]
pub struct NoActiveVersion(pub String);

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
    /// Its process ended.
    #[error("the model did not answer: {0}")]
    Failed(String),
    /// The server cannot run models.
    #[error("this server cannot run models now: {0}")]
    Unavailable(String),
}

impl PredictionDelay {
    /// Returns the time after which another try makes sense.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> u32 {
        match self {
            Self::Busy => 2,
            Self::Preparing | Self::Failed(_) => 5,
            Self::Unavailable(_) => 60,
        }
    }
}
