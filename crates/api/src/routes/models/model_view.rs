//! Record of a model, one per version.

use std::collections::BTreeMap;

use labdata_domain::models::{
    ModelVersion, ProblemType, Progress, QualityPreset, TaskType, TrainingPhase, VersionState,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

use crate::http::Timestamp;

names! {
    /// State of a version of a model.
    pub MlModelStatus = VersionState::NAMES;
    /// Kind of input that a model learns from.
    pub MlTaskType = TaskType::ALL.map(|(name, _)| name);
    /// Kind of value that a model predicts.
    pub MlProblemType = ProblemType::ALL.map(|(name, _)| name);
    /// Trade-off between the quality of a model and the time of its training.
    pub MlQualityPreset = QualityPreset::ALL.map(|(name, _)| name);
    /// Phase of a training.
    pub MlTrainingPhase = TrainingPhase::ALL.map(|(name, _)| name);
}

/// A version of a model.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MlModel)]
pub struct ModelView {
    /// The model's id, the same for all its versions.
    id: String,
    /// The model's name.
    name: String,
    /// Remarks for people.
    description: Option<String>,
    /// True for an archived model, which is neither listed nor trained.
    archived: bool,
    /// Counted from 1 within the model.
    version_number: u32,
    /// True for the version that answers predictions.
    currently_active: bool,
    /// State of the training.
    #[schema(value_type = MlModelStatus)]
    status: &'static str,
    /// Why the training failed.
    error_message: Option<String>,
    /// Kind of input.
    #[schema(value_type = MlTaskType)]
    task_type: &'static str,
    /// Kind of value that it predicts.
    #[schema(value_type = MlProblemType)]
    problem_type: &'static str,
    #[schema(value_type = MlQualityPreset)]
    quality_preset: &'static str,
    /// The dataset that it learns from.
    dataset_id: String,
    /// Column that it predicts.
    target_column: String,
    /// Columns that it learns from.
    feature_columns: Vec<String>,
    /// Columns with ids of image files that it learns from.
    image_columns: Vec<String>,
    /// When the training was requested.
    created_at: Timestamp,
    /// When the training started.
    training_started_at: Option<Timestamp>,
    /// When the training ended.
    training_completed_at: Option<Timestamp>,
    /// Progress of the training; null before the first report.
    progress: Option<ProgressView>,
    /// Values by metric, measured on rows that the model has not learned from; null until it is ready.
    evaluation_metrics: Option<BTreeMap<String, f64>>,
}

/// Progress of a training.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TrainingProgress)]
pub struct ProgressView {
    /// What it does now.
    #[schema(value_type = MlTrainingPhase)]
    phase: &'static str,
    /// Number of models that were tried.
    models_tried: u32,
    /// Score of the best one so far, on validation rows.
    best_score: Option<ScoreView>,
    updated_at: Timestamp,
}

/// Value of a metric.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TrainingScore)]
pub struct ScoreView {
    /// Name of the metric.
    metric: String,
    /// Its value.
    value: f64,
}

impl From<Progress> for ProgressView {
    fn from(progress: Progress) -> Self {
        Self {
            phase: progress.phase.as_str(),
            models_tried: progress.models_tried,
            best_score: progress.best_score.map(|score| ScoreView {
                metric: score.metric,
                value: score.value,
            }),
            updated_at: progress.updated_at.into(),
        }
    }
}

impl From<ModelVersion> for ModelView {
    fn from(version: ModelVersion) -> Self {
        Self {
            id: version.model.to_string(),
            archived: version.archived,
            version_number: version.number,
            currently_active: version.is_active,
            status: version.state.as_str(),
            error_message: version.error().map(str::to_owned),
            task_type: version.plan.task.as_str(),
            problem_type: version.plan.problem.as_str(),
            quality_preset: version.plan.preset.as_str(),
            dataset_id: version.dataset.to_string(),
            target_column: version.plan.target,
            feature_columns: version.plan.features,
            image_columns: version.plan.images,
            created_at: version.requested_at.into(),
            training_started_at: version.state.started_at().map(Into::into),
            training_completed_at: version.state.completed_at().map(Into::into),
            progress: version.progress.map(Into::into),
            evaluation_metrics: version.metrics.map(|metrics| {
                let metrics = metrics.into_iter();
                metrics.map(|(name, it)| (name, it.value)).collect()
            }),
            name: version.name,
            description: version.description,
        }
    }
}
