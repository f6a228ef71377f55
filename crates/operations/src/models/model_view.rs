//! Record of a model, one per version.

use std::collections::BTreeMap;

use labdata_domain::{
    ids::{DatasetId, ModelId},
    models::{
        ModelVersion, ProblemType, Progress, QualityPreset, Score, TaskType, TrainingPhase,
        VersionState,
    },
};
use labdata_request_body::{Timestamp, names, output};

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

output! {
    /// A version of a model.
    #[derive(Clone, Debug)]
    pub struct ModelView as "MlModel" from version: ModelVersion {
        /// The model's id, the same for all its versions.
        id: ModelId = version.model,
        /// Why the training failed.
        error_message: Option<String> = version.error().map(str::to_owned),
        /// The model's name.
        name: String = version.name,
        /// Remarks for people.
        description: Option<String> = version.description,
        /// True for an archived model, which is neither trained nor predicts, and is listed on request only.
        archived: bool = version.archived,
        /// Counted from 1 within the model.
        version_number: u32 = version.number,
        /// True for the version that predicts.
        currently_active: bool = version.is_active,
        /// State of the training.
        status: MlModelStatus = version.state.as_str().into(),
        /// Kind of input.
        task_type: MlTaskType = version.plan.task.as_str().into(),
        /// Kind of value that it predicts.
        problem_type: MlProblemType = version.plan.problem.as_str().into(),
        quality_preset: MlQualityPreset = version.plan.preset.as_str().into(),
        /// The dataset that it learns from.
        dataset_id: DatasetId = version.dataset,
        /// Column that it predicts.
        target_column: String = version.plan.target,
        /// Columns that it learns from.
        feature_columns: Vec<String> = version.plan.features,
        /// Columns with ids of image files that it learns from.
        image_columns: Vec<String> = version.plan.images,
        /// When the training was requested.
        created_at: Timestamp = version.requested_at.into(),
        /// When the training started.
        training_started_at: Option<Timestamp> = version.state.started_at().map(Into::into),
        /// When the training ended.
        training_completed_at: Option<Timestamp> = version.state.completed_at().map(Into::into),
        /// Progress of the training; null before the first report.
        progress: Option<ProgressView> = version.progress.map(Into::into),
        /// Values by metric, measured on rows that the model has not learned from; null until it is ready.
        evaluation_metrics: Option<BTreeMap<String, f64>> = version.metrics.map(|metrics| {
            metrics.into_iter().map(|(name, it)| (name, it.value)).collect()
        }),
    }
}

output! {
    /// Progress of a training.
    #[derive(Clone, Debug)]
    pub struct ProgressView as "TrainingProgress" from progress: Progress {
        /// Current phase.
        phase: MlTrainingPhase = progress.phase.as_str().into(),
        /// Number of models that were tried.
        models_tried: u32 = progress.models_tried,
        /// Score of the best one so far, on validation rows.
        best_score: Option<ScoreView> = progress.best_score.map(Into::into),
        updated_at: Timestamp = progress.updated_at.into(),
    }
}

output! {
    /// Value of a metric.
    #[derive(Clone, Debug)]
    pub struct ScoreView as "TrainingScore" from score: Score {
        /// Name of the metric.
        metric: String = score.metric,
        /// Its value.
        value: f64 = score.value,
    }
}
