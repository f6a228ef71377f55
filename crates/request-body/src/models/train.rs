//! A training of a model.

use labdata_domain::{
    ids::{DatasetId, ModelId},
    models::{
        MAX_MODEL_DESCRIPTION_LENGTH, MAX_MODEL_NAME_LENGTH, OneModel, ProblemType, QualityPreset,
        TaskType,
    },
};
use serde_json::json;

use crate::{
    ProblemKind, Reader as _,
    fields::{optional, or, required},
    readers::{MaybeId, choice, id, list, text},
    shape,
};

shape! {
    /// The training.
    #[derive(Clone, Debug)]
    pub struct TrainModelBody {
        /// Name of a new model, unique among those that are not archived.
        pub name: Option<String> = optional(text(1..=MAX_MODEL_NAME_LENGTH)),
        /// The model to retrain.
        pub ml_model_id: Option<MaybeId<ModelId>> = optional(id()),
        /// Remarks for people; those of the newest version when retraining without.
        pub description: Option<String> = optional(text(..=MAX_MODEL_DESCRIPTION_LENGTH)),
        /// The dataset to learn from.
        pub dataset_id: MaybeId<DatasetId> = required(id()),
        /// Column to predict.
        pub target_column: String = required(text(..).example("cultivar")),
        /// Columns to learn from; all that can be used if absent.
        pub feature_columns: Option<Vec<String>> = optional(list(text(..))),
        /// Columns that hold ids of image files.
        pub image_columns: Option<Vec<String>> = optional(list(text(..))),
        /// Kind of input; `multimodal` with image columns and `tabular` without if absent.
        pub task_type: Option<TaskType> = optional(choice(TaskType::ALL)),
        /// Kind of value to predict; inferred from the target if absent.
        pub problem_type: Option<ProblemType> = optional(choice(ProblemType::ALL)),
        /// Trade-off between the quality of the model and the time of its training.
        pub quality_preset: QualityPreset = or(json!("high_quality"), choice(QualityPreset::ALL)),
    }
    example json!({
        "name": "Cultivar",
        "dataset_id": "0191d5a4-0000-7000-8000-000000000000",
        "target_column": "cultivar",
        "feature_columns": ["alcohol", "color", "hue"],
        "quality_preset": "medium_quality",
    });
    rules |at| {
        if let (Some(name), Some(model)) = (name, ml_model_id)
            && name.is_some() == model.is_some()
        {
            at.report(ProblemKind::value_error(&OneModel.to_string()));
        }
    }
}
