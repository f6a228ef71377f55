//! `POST /api/v1/ml-models`

use actix_web::web::Json;
use labdata_application::models::train_model::{TrainModel, train_model};
use labdata_request_body::models::TrainModelBody;

use super::ModelView;
use crate::http::{ApiResult, Call, JsonBody, Write, error::ErrorBody};

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
        (status = 429, description = "Too many trainings of the organization wait; nothing was queued", body = ErrorBody),
        (status = 503, description = "No training backend can take work; the detail says what is missing", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, JsonBody<TrainModelBody>>) -> ApiResult<Json<ModelView>> {
    let JsonBody(body) = call.body.clone();
    let command = TrainModel::try_from(body)?;
    let version = train_model(call.begin().await?, &call.actor, command).await?;
    Ok(Json(version.into()))
}
