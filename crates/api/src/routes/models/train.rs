//! `POST /api/v1/ml-models`

use actix_web::web::Json;
use labdata_application::models::train_model::{TrainModel, TrainedModel, train_model};
use labdata_domain::{
    ids::{DatasetId, ModelId},
    models::{
        MAX_MODEL_DESCRIPTION_LENGTH, MAX_MODEL_NAME_LENGTH, OneModel, ProblemType, QualityPreset,
        TaskType, TrainingRequest,
    },
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, or, required},
    readers::{MaybeId, choice, id, list, text},
    shape,
};
use serde_json::json;

use super::ModelView;
use crate::http::{Answer, Call, JsonBody, OrNotFound, Write, error::ErrorBody};

shape! {
    /// The training.
    #[derive(Clone, Debug)]
    pub struct TrainModelBody {
        /// Name of a new model, unique among those that are not archived.
        name: Option<String> = optional(text(1..=MAX_MODEL_NAME_LENGTH)),
        /// The model to retrain.
        ml_model_id: Option<MaybeId<ModelId>> = optional(id()),
        /// Remarks for people; those of the newest version when retraining without.
        description: Option<String> = optional(text(..=MAX_MODEL_DESCRIPTION_LENGTH)),
        /// The dataset to learn from.
        dataset_id: MaybeId<DatasetId> = required(id()),
        /// Column to predict.
        target_column: String = required(text(..).example("cultivar")),
        /// Columns to learn from; all that can be used if absent.
        feature_columns: Option<Vec<String>> = optional(list(text(..))),
        /// Columns that hold ids of image files.
        image_columns: Option<Vec<String>> = optional(list(text(..))),
        /// Kind of input; `multimodal` with image columns and `tabular` without if absent.
        task_type: Option<TaskType> = optional(choice(TaskType::ALL)),
        /// Kind of value to predict; inferred from the target if absent.
        problem_type: Option<ProblemType> = optional(choice(ProblemType::ALL)),
        /// Trade-off between the quality of the model and the time of its training.
        quality_preset: QualityPreset = or(json!("high_quality"), choice(QualityPreset::ALL)),
    }
    rules |at| {
        if let (Some(name), Some(model)) = (name, ml_model_id)
            && name.is_some() == model.is_some()
        {
            at.report(ProblemKind::value_error(&OneModel.to_string()));
        }
    }
}

/// Trains a new model, or retrains an existing one
///
/// With `name` the first version of a new model, with `ml_model_id` the next version of an existing
/// one. The dataset's columns are checked before the training is queued. The first version that is
/// ready answers predictions; a retrained one takes its place when it is ready.
#[utoipa::path(
    post,
    path = "/api/v1/ml-models",
    operation_id = "train_ml_model",
    tag = "ml-models",
    responses(
        (status = 200, description = "The version, pending", body = ModelView),
        (status = 503, description = "No training backend can take work; the detail says what is missing", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, JsonBody<TrainModelBody>>) -> Answer<Json<ModelView>> {
    let JsonBody(body) = call.body.clone();
    let model = match (body.name, body.ml_model_id) {
        (_, Some(id)) => TrainedModel::Existing(id.or_not_found("ML model")?),
        (name, None) => TrainedModel::New(name.unwrap_or_default()),
    };
    let command = TrainModel {
        model,
        description: body.description,
        dataset: body.dataset_id.or_not_found("dataset")?,
        request: TrainingRequest {
            target: body.target_column,
            features: body.feature_columns,
            images: body.image_columns.unwrap_or_default(),
            task: body.task_type,
            problem: body.problem_type,
            preset: body.quality_preset,
        },
    };
    let version = train_model(call.ports(), &call.actor, command).await?;
    Ok(Json(version.into()))
}
