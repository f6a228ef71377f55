//! Failures of predictions.

use labdata_domain::refusal::{ErrorCode, Refusal};
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
            PredictionError::Predictor(PredictError::Delayed(delay)) => Self::refused(delay),
            PredictionError::Predictor(PredictError::Rejected(rows)) => Self::refused(rows),
            PredictionError::Predictor(refusal @ PredictError::Refused(_)) => {
                Refusal::invalid(ErrorCode::InvalidPrediction, refusal.to_string()).into()
            }
            PredictionError::Other(error) => error,
        }
    }
}
