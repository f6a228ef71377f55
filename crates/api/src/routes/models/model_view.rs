//! Record of a model, one per version.

use std::collections::BTreeMap;

use labdata_domain::models::{ModelVersion, Progress};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Timestamp;

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
    status: &'static str,
    /// Why the training failed.
    error_message: Option<String>,
    /// `tabular`, `multimodal` or `segmentation`.
    task_type: &'static str,
    /// `binary`, `multiclass`, `regression` or `semantic_segmentation`.
    problem_type: &'static str,
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
    training_started_at: Option<Timestamp>,
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
    /// `preparing`, `reading`, `checking`, `fitting`, `evaluating`, `packing` or `done`.
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
