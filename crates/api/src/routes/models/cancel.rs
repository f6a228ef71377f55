//! `POST /api/v1/ml-models/{ml_model_id}/cancel-training`

use actix_web::web::Json;
use labdata_application::models::cancel_training::cancel_training;
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Write, error::ErrorBody};

/// Cancels every training of a model
///
/// All its versions that are pending or training.
#[utoipa::path(
    post,
    path = "/api/v1/ml-models/{ml_model_id}/cancel-training",
    operation_id = "cancel_ml_model_training",
    tag = "ml-models",
    responses(
        (status = 200, description = "The newest version", body = ModelView),
        (status = 400, description = "No version is pending or training", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Write, NoBody, (), ModelPath>) -> ApiResult<Json<ModelView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let version = cancel_training(call.ports(), &call.actor, id).await?;
    Ok(Json(version.into()))
}
