//! Models trained on datasets: their versions, and the checks of a training before it is queued.
//!
//! A [`Dataset`] is an immutable snapshot. A model has numbered versions, each the result of one
//! training; at most one version is active and responds to predictions.

mod backend;
mod dataset;
mod failure;
mod hex;
mod limits;
mod prediction;
mod queue_limit;
mod record;
mod report;
mod report_page;
mod report_token;
mod result;
mod training;
mod version;

use serde::{Deserialize, Serialize};

pub use backend::{NoTrainingBackend, TRAINING_BACKEND_LIFETIME, TrainingBackend, check_backends};
pub use dataset::{
    ColumnProfile, ColumnProfiler, Dataset, DatasetColumn, DatasetMask, DatasetRefusal,
    DatasetSource, IMAGE_COLUMN, MASK_COLUMN, MAX_COUNTED_VALUES, MAX_DATASET_BYTES,
    MAX_DATASET_COLUMN_NAME_LENGTH, MAX_DATASET_COLUMNS, MAX_DATASET_DESCRIPTION_LENGTH,
    MAX_DATASET_NAME_LENGTH, MAX_DATASET_ROWS, NotOneSource, PREVIEWED_ROWS, check_column_names,
    preview_cell,
};
pub use failure::EndedTraining;
pub use limits::{MAX_ARTIFACT_BYTES, TrainingLimits};
pub use prediction::{
    ClassProbabilities, FeatureColumn, FeatureValues, InvalidRows, InvalidTablePrediction,
    MAX_PREDICTION_ROWS, MAX_TABLE_PREDICTION_ROWS, ModelFailure, ModelSignature, NoActiveVersion,
    NotASegmentation, PredictedLast, PredictedMask, PredictedValue, PredictionDelay,
    PredictionInput, Predictions, RawPredictions, RowProblem, SegmentationOptions, TAKEOVER_LIMIT,
    TablePrediction, UnusablePredictions, check_rows,
};
pub use queue_limit::{MAX_PENDING_TRAININGS, TrainingQueueFull, check_pending_trainings};
pub use record::{
    Artifact, MAX_MODEL_DESCRIPTION_LENGTH, MAX_MODEL_NAME_LENGTH, Metric, ModelArchived,
    ModelVersion, NameTaken, NewModel, NewVersion, NotReadyYet, OneModel, Progress, Score,
    TrainingPhase,
};
pub use report::{TrainingEnd, TrainingError, TrainingReport};
pub use report_page::report_page;
pub use report_token::{PlainReportToken, ReportTokenHash};
pub use result::{
    Class, ConfusionMatrix, FeatureImportance, FeatureType, InvalidResult, LeaderboardEntry,
    MAX_RESIDUALS, ModelFeature, ReportedArtifact, Residual, RowCounts, TrainingResult,
};
pub use training::{InvalidTraining, MAX_INTEGER_CLASSES, TrainingPlan, TrainingRequest};
pub use version::{ActivateError, NothingInFlight, VersionState, becomes_active};

/// Kind of input that a model learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskType {
    /// Columns of a table.
    Tabular,
    /// Columns of a table, texts and images.
    Multimodal,
    /// Images, whose pixels are labeled.
    Segmentation,
}

impl TaskType {
    /// All task types with their names in the API and the database.
    pub const ALL: [(&'static str, Self); 3] = [
        ("tabular", Self::Tabular),
        ("multimodal", Self::Multimodal),
        ("segmentation", Self::Segmentation),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tabular => "tabular",
            Self::Multimodal => "multimodal",
            Self::Segmentation => "segmentation",
        }
    }
}

/// Trade-off between the quality of a model and the time that its training takes. The presets are
/// those of `AutoGluon`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QualityPreset {
    /// The best model, without regard to size and speed.
    Best,
    /// A good and fast model.
    #[default]
    High,
    /// A smaller and faster model.
    Good,
    /// The fastest training.
    Medium,
}

impl QualityPreset {
    /// All presets with their names in the API and the database.
    pub const ALL: [(&'static str, Self); 4] = [
        ("best_quality", Self::Best),
        ("high_quality", Self::High),
        ("good_quality", Self::Good),
        ("medium_quality", Self::Medium),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Best => "best_quality",
            Self::High => "high_quality",
            Self::Good => "good_quality",
            Self::Medium => "medium_quality",
        }
    }
}

/// Kind of value that a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemType {
    /// One of two classes.
    Binary,
    /// One of several classes.
    Multiclass,
    /// A number.
    Regression,
    /// A class for each pixel.
    SemanticSegmentation,
}

impl ProblemType {
    /// All problem types with their names in the API and the database.
    pub const ALL: [(&'static str, Self); 4] = [
        ("binary", Self::Binary),
        ("multiclass", Self::Multiclass),
        ("regression", Self::Regression),
        ("semantic_segmentation", Self::SemanticSegmentation),
    ];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Multiclass => "multiclass",
            Self::Regression => "regression",
            Self::SemanticSegmentation => "semantic_segmentation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_its_value() {
        for (name, task) in TaskType::ALL {
            assert_eq!(task.as_str(), name);
        }
        for (name, preset) in QualityPreset::ALL {
            assert_eq!(preset.as_str(), name);
        }
        for (name, problem) in ProblemType::ALL {
            assert_eq!(problem.as_str(), name);
        }
    }

    #[test]
    fn the_preset_is_high_quality_unless_another_is_named() {
        assert_eq!(QualityPreset::default().as_str(), "high_quality");
    }
}
