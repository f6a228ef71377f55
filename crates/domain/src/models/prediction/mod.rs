//! Predictions: rows checked against the features of a model, and what the model responds.

mod refusal;
mod response;
mod rows;
mod segmentation;
mod signature;
mod table;
mod takeover;

pub use refusal::{ModelFailure, NoActiveVersion, PredictionDelay};
pub use response::{
    ClassProbabilities, PredictedValue, Predictions, RawPredictions, UnusablePredictions,
};
pub use rows::{
    FeatureColumn, FeatureValues, InvalidRows, MAX_PREDICTION_ROWS, PredictionInput, RowProblem,
    check_rows,
};
pub use segmentation::{NotASegmentation, PredictedMask, SegmentationOptions};
pub use signature::ModelSignature;
pub use table::{InvalidTablePrediction, MAX_TABLE_PREDICTION_ROWS, TablePrediction};
pub use takeover::{PredictedLast, TAKEOVER_LIMIT};

#[cfg(test)]
mod tests;
