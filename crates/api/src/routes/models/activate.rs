//! `POST /api/v1/ml-models/{ml_model_id}/activate`

use actix_web::web::Json;
use labdata_application::models::activate_version::activate_version;
use labdata_domain::refusal::Resource;
use labdata_request_body::{Reader as _, fields::required, readers::integer, shape};
use serde_json::json;

use super::{ModelPath, ModelView, version_number};
use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Write, error::ErrorBody};

shape! {
    /// The version to activate.
    #[derive(Clone, Copy, Debug)]
    pub struct ActivateBody {
        /// Its number
        version_number: i64 = required(integer(i64::MIN..=i64::MAX).with("minimum", 1).with("maximum", u32::MAX)),
    }
    example json!({"version_number": 2});
}

/// Chooses the version that answers predictions
///
/// An earlier version as well, for a rollback. It stays active until a version that was requested
/// after it is ready, or another one is chosen.
#[utoipa::path(
    post,
    path = "/api/v1/ml-models/{ml_model_id}/activate",
    operation_id = "activate_ml_model_version",
    tag = "ml-models",
    responses(
        (status = 200, description = "The version", body = ModelView),
        (status = 400, description = "The version is not ready, or the model is archived", body = ErrorBody),
    )
)]
pub async fn handle(
    call: Call<Write, JsonBody<ActivateBody>, (), ModelPath>,
) -> ApiResult<Json<ModelView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let JsonBody(body) = call.body;
    let number = version_number(body.version_number)?;
    let version = activate_version(call.ports(), &call.actor, id, number).await?;
    Ok(Json(version.into()))
}
