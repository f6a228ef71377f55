//! `POST /api/v1/ml-models/predict`

use labdata_application::{
    Error,
    models::prediction::{
        ModelReference,
        predict::{Predict, predict},
    },
};
use labdata_domain::{
    data::write::Rows,
    ids::ModelId,
    models::{MAX_MODEL_NAME_LENGTH, MAX_PREDICTION_ROWS},
    refusal::Resource,
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, id, rows, text},
    shape,
};
use serde_json::json;

use super::predictions_view::PredictionsView;
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Read, Tag, tools::ToolFacts};

shape! {
    /// The model, and the rows to predict.
    #[derive(Clone, Debug)]
    pub struct PredictBody {
        /// The model's id. Either this or `ml_model_name` is given.
        ml_model_id: Option<MaybeId<ModelId>> = optional(id()),
        /// The name of a model that is not archived.
        ml_model_name: Option<String> = optional(text(..=MAX_MODEL_NAME_LENGTH)),
        /// The rows: values by the names of the model's features. Image features take ids of files.
        /// Other names are ignored, and null is a missing value.
        data: Rows = required(
            rows()
                .of(1..=MAX_PREDICTION_ROWS)
                .example(json!([{"alcohol": 13.2, "hue": 1.05}])),
        ),
    }
    example json!({
        "ml_model_name": "Cultivar",
        "data": [{"alcohol": 13.2, "color": 5.6, "hue": 1.05}, {"alcohol": 12.4, "color": 2.1, "hue": 0.98}],
    });
    rules |at| {
        if let (Some(id), Some(name)) = (ml_model_id, ml_model_name)
            && id.is_some() == name.is_some()
        {
            at.report(ProblemKind::value_error("give either ml_model_id or ml_model_name"));
        }
    }
}

impl TryFrom<PredictBody> for Predict {
    type Error = Error;

    fn try_from(body: PredictBody) -> Result<Self, Error> {
        let model = match (body.ml_model_id, body.ml_model_name) {
            (Some(id), _) => ModelReference::Id(id.or_not_found(Resource::Model)?),
            (None, name) => {
                let unknown = || Error::not_found(Resource::Model);
                ModelReference::Name(name.ok_or_else(unknown)?)
            }
        };
        Ok(Self {
            model,
            rows: body.data,
        })
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "predict",
        method: Method::Post,
        path: "/api/v1/ml-models/predict",
        tag: Tag::MlModels,
        summary: "Predict with a model",
        description: "Predicts rows with the active version of a model. A row needs a value or null for each \
            of the model's features; problems are listed by row and column, and then nothing is \
            predicted. The first prediction of a version takes some seconds, or longer where packages \
            must be installed: 503 with `Retry-After` says so. While a newer version is loaded, for two \
            minutes at most, the one before predicts; `version_number` names the version that did. At \
            most 10,000 rows.",
        returns: "A prediction per row",
        refusals: &[
            (
                400,
                "The model has no active version, or cannot read the rows: the detail names rows and \
                 columns",
            ),
            (
                503,
                "The model is being prepared, or too many predictions are under way; try again after \
                 `Retry-After` seconds",
            ),
        ],
    }
    .runs(run)
    .tool_running(
        ToolFacts::of("Predicts rows with the active version of an ML model."),
        run_for_model,
    )
}

async fn run(call: Call<Read, JsonBody<PredictBody>>) -> Result<PredictionsView, Error> {
    let command = Predict::try_from(call.body)?;
    Ok(predict(&call.services, &call.actor, command).await?.into())
}

async fn run_for_model(call: Call<Read, JsonBody<PredictBody>>) -> Result<PredictionsView, Error> {
    Ok(run(call).await?.without_images())
}
