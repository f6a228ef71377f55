//! `GET /api/v1/ml-models/{ml_model_id}`

use actix_web::web::Json;
use labdata_application::models::get_model::get_model;
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView, VersionQuery};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Reads the newest version of a model, or the one of `version_number`
///
/// The record of one version, with its training status and results.
#[utoipa::path(
    get,
    path = "/api/v1/ml-models/{ml_model_id}",
    operation_id = "get_ml_model",
    tag = "ml-models",
    responses((status = 200, description = "The version", body = ModelView))
)]
pub async fn handle(
    call: Call<Read, NoBody, VersionQuery, ModelPath>,
) -> ApiResult<Json<ModelView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let version = get_model(call.ports(), &call.actor, id, number).await?;
    Ok(Json(version.into()))
}
