//! Failures of predictions.

use labdata_ports::models::PredictError;

use crate::Error;

/// Failure of a prediction.
#[derive(Debug, thiserror::Error)]
pub(super) enum PredictionError {
    /// The predictor has no predictions.
    #[error(transparent)]
    Predictor(#[from] PredictError),
    /// Another port failed.
    #[error(transparent)]
    Other(#[from] Error),
}

impl From<PredictionError> for Error {
    fn from(error: PredictionError) -> Self {
        match error {
            PredictionError::Predictor(PredictError::Delayed(delay)) => Self::Delayed(delay),
            PredictionError::Predictor(refusal) => Self::Invalid(refusal.to_string()),
            PredictionError::Other(error) => error,
        }
    }
}
