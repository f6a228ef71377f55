//! `POST /api/v1/ml-models`

use labdata_application::{
    Error,
    models::train_model::{TrainModel, TrainedModel, train_model},
};
use labdata_domain::{
    agent::VERSION_REPLACED,
    ids::{DatasetId, ModelId},
    models::{
        MAX_MODEL_DESCRIPTION_LENGTH, MAX_MODEL_NAME_LENGTH, OneModel, ProblemType, QualityPreset,
        TaskType, TrainingRequest,
    },
    patterns,
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, or, required},
    readers::{MaybeId, choice, id, list, text},
    shape,
};
use serde_json::json;

use super::ModelView;
use crate::{
    About, Call, JsonBody, Method, Operation, OrNotFound, Tag, WithEffects, Write, tools::ToolFacts,
};

shape! {
    /// The training.
    #[derive(Clone, Debug)]
    pub struct TrainModelBody {
        /// Name of a new model, unique among those that are not archived.
        name: Option<String> = optional(text(1..=MAX_MODEL_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
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

impl TryFrom<TrainModelBody> for TrainModel {
    type Error = Error;

    fn try_from(body: TrainModelBody) -> Result<Self, Error> {
        let model = match (body.name, body.ml_model_id) {
            (_, Some(id)) => TrainedModel::Existing(id.or_not_found(Resource::Model)?),
            (name, None) => TrainedModel::New(name.unwrap_or_default()),
        };
        Ok(Self {
            model,
            description: body.description,
            dataset: body.dataset_id.or_not_found(Resource::Dataset)?,
            request: TrainingRequest {
                target: body.target_column,
                features: body.feature_columns,
                images: body.image_columns.unwrap_or_default(),
                task: body.task_type,
                problem: body.problem_type,
                preset: body.quality_preset,
            },
        })
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "train_ml_model",
        method: Method::Post,
        path: "/api/v1/ml-models",
        tag: Tag::MlModels,
        summary: "Trains a new model, or retrains an existing one",
        description: "With `name` the first version of a new model, with `ml_model_id` the next version of \
            an existing one. The dataset's columns are checked before the training is queued. The first \
            version that is ready predicts; a retrained one takes its place when it is ready.",
        returns: "The version, pending",
        refusals: &[
            (429, "Too many trainings of the organization wait; nothing was queued"),
            (503, "No training backend can take work; the detail says what is missing"),
        ],
    }
    .runs(run)
    .creating()
    .tool(ToolFacts {
        name: Some("train_model"),
        ..ToolFacts::of(
            "Queues the training of an ML model on a dataset, and does not wait for it: with name the \
             first version of a new model, with ml_model_id another version of an existing one, which \
             replaces the active version when it is ready. list_ml_models shows the state.",
        )
    })
}

async fn run(call: Call<Write, JsonBody<TrainModelBody>>) -> Result<WithEffects<ModelView>, Error> {
    let command = TrainModel::try_from(call.body)?;
    let version = train_model(&call.services, &call.actor, command).await?;
    let effect = (version.number > 1).then_some(VERSION_REPLACED);
    Ok(WithEffects {
        response: version.into(),
        effects: effect.into_iter().collect(),
    })
}
