//! Models trained on datasets: their versions, and the checks of a training before it is queued.
//!
//! A [`Dataset`] is an immutable snapshot. A model has numbered versions, each the result of one
//! training; at most one version is active and responds to predictions.

mod artifact;
mod backend;
mod dataset;
mod failure;
mod hex;
mod kind;
mod limits;
mod prediction;
mod progress;
mod queue_limit;
mod record;
mod report;
mod report_page;
mod report_token;
mod result;
mod training;
mod version;

pub use artifact::Artifact;
pub use backend::{NoTrainingBackend, TRAINING_BACKEND_LIFETIME, TrainingBackend, check_backends};
pub use dataset::{
    ColumnProfile, ColumnProfiler, Dataset, DatasetColumn, DatasetMask, DatasetRefusal,
    DatasetSource, IMAGE_COLUMN, MASK_COLUMN, MAX_COUNTED_VALUES, MAX_DATASET_BYTES,
    MAX_DATASET_COLUMN_NAME_LENGTH, MAX_DATASET_COLUMNS, MAX_DATASET_DESCRIPTION_LENGTH,
    MAX_DATASET_NAME_LENGTH, MAX_DATASET_ROWS, NotOneSource, PREVIEWED_ROWS, check_column_names,
    preview_cell,
};
pub use failure::EndedTraining;
pub use kind::{ProblemType, QualityPreset, TaskType};
pub use limits::{MAX_ARTIFACT_BYTES, TrainingLimits};
pub use prediction::{
    ClassProbabilities, FeatureColumn, FeatureValues, InvalidRows, InvalidTablePrediction,
    MAX_PREDICTION_ROWS, MAX_TABLE_PREDICTION_ROWS, ModelFailure, ModelSignature, NoActiveVersion,
    NotASegmentation, PredictedLast, PredictedMask, PredictedValue, PredictionDelay,
    PredictionInput, Predictions, RawPredictions, RowProblem, SegmentationOptions, TAKEOVER_LIMIT,
    TablePrediction, UnusablePredictions, check_rows,
};
pub use progress::{Progress, Score, TrainingPhase};
pub use queue_limit::{MAX_PENDING_TRAININGS, TrainingQueueFull, check_pending_trainings};
pub use record::{
    MAX_MODEL_DESCRIPTION_LENGTH, MAX_MODEL_NAME_LENGTH, ModelArchived, ModelVersion, NameTaken,
    NewModel, NewVersion, NotReadyYet, OneModel,
};
pub use report::{TrainingEnd, TrainingError, TrainingReport};
pub use report_page::report_page;
pub use report_token::{PlainReportToken, ReportTokenHash};
pub use result::{
    Class, ConfusionMatrix, FeatureImportance, FeatureType, InvalidResult, LeaderboardEntry,
    MAX_RESIDUALS, Metric, ModelFeature, ReportedArtifact, Residual, RowCounts, TrainingResult,
};
pub use training::{
    InvalidTraining, MAX_INTEGER_CLASSES, MIN_TRAINING_ROWS, TrainingPlan, TrainingRequest,
};
pub use version::{ActivateError, NothingInFlight, VersionState, becomes_active};
