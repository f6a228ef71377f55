//! `POST /api/v1/ml-models/predict`

use actix_web::web::Json;
use labdata_application::{
    Error,
    models::prediction::{
        ModelReference,
        predict::{Predict, predict},
    },
};
use labdata_domain::{
    ids::ModelId,
    models::{MAX_MODEL_NAME_LENGTH, MAX_PREDICTION_ROWS},
};
use labdata_request_body::{
    ProblemKind, Reader as _,
    fields::{optional, required},
    readers::{MaybeId, id, list, object, text},
    shape,
};
use serde_json::{Map, Value, json};

use super::predictions_view::PredictionsView;
use crate::http::{Answer, Call, JsonBody, OrNotFound, Read, error::ErrorBody};

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
        data: Vec<Map<String, Value>> = required(
            list(object())
                .of(1..=MAX_PREDICTION_ROWS)
                .example(json!([{"alcohol": 13.2, "hue": 1.05}])),
        ),
    }
    rules |at| {
        if let (Some(id), Some(name)) = (ml_model_id, ml_model_name)
            && id.is_some() == name.is_some()
        {
            at.report(ProblemKind::value_error("give either ml_model_id or ml_model_name"));
        }
    }
}

/// Predict with a model
///
/// Predicts rows with the active version of a model. A row needs a value or null for each of the model's
/// features; problems are listed by row and column, and then nothing is predicted. The first prediction
/// of a version takes some seconds, or longer where packages must be installed: 503 with `Retry-After`
/// says so. At most 10,000 rows.
#[utoipa::path(
    post,
    path = "/api/v1/ml-models/predict",
    tag = "ml-models",
    operation_id = "predict",
    responses(
        (status = 200, description = "A prediction per row", body = PredictionsView),
        (status = 400, description = "The model has no active version, or cannot read the rows: the detail names rows and columns", body = ErrorBody),
        (status = 503, description = "The model is being prepared, or too many predictions are under way; try again after `Retry-After` seconds", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, JsonBody<PredictBody>>) -> Answer<Json<PredictionsView>> {
    let Call {
        app,
        actor,
        body: JsonBody(body),
        ..
    } = call;
    let model = match (body.ml_model_id, body.ml_model_name) {
        (Some(id), _) => ModelReference::Id(id.or_not_found("ML model")?),
        (None, Some(name)) => ModelReference::Name(name),
        (None, None) => return Err(Error::NotFound("ML model").into()),
    };
    let command = Predict {
        model,
        rows: body.data,
    };
    let prediction = predict(&app.ports, &actor, command).await?;
    Ok(Json(prediction.into()))
}
