//! `POST /api/v1/ml-models/{ml_model_id}/archive`

use actix_web::web::Json;
use labdata_application::models::archive_model::archive_model;
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Write};

/// Archives a model
///
/// Its trainings are cancelled, and its name is free again. It can still be read.
#[utoipa::path(
    post,
    path = "/api/v1/ml-models/{ml_model_id}/archive",
    operation_id = "archive_ml_model",
    tag = "ml-models",
    responses((status = 200, description = "The newest version", body = ModelView))
)]
pub async fn handle(call: Call<Write, NoBody, (), ModelPath>) -> ApiResult<Json<ModelView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let version = archive_model(call.ports(), &call.actor, id).await?;
    Ok(Json(version.into()))
}
