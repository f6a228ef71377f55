//! `POST /api/v1/ml-models/predict`

use actix_web::web::Json;
use labdata_application::models::prediction::predict::{Predict, predict};
use labdata_request_body::models::PredictBody;

use super::predictions_view::PredictionsView;
use crate::http::{ApiResult, Call, JsonBody, Read, error::ErrorBody};

/// Predict with a model
///
/// Predicts rows with the active version of a model. A row needs a value or null for each of the model's
/// features; problems are listed by row and column, and then nothing is predicted. The first prediction
/// of a version takes some seconds, or longer where packages must be installed: 503 with `Retry-After`
/// says so. While a newer version is loaded, for two minutes at most, the one before predicts;
/// `version_number` names the version that did. At most 10,000 rows.
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
pub async fn handle(call: Call<Read, JsonBody<PredictBody>>) -> ApiResult<Json<PredictionsView>> {
    let Call {
        app,
        actor,
        body: JsonBody(body),
        ..
    } = call;
    let prediction = predict(&app.ports, &actor, Predict::try_from(body)?).await?;
    Ok(Json(prediction.into()))
}
