//! `GET /api/v1/session`

use actix_web::web::Json;
use labdata_application::people::identify::identify;

use crate::{
    http::{ApiResult, Call, NoBody, scope::AnyScope},
    routes::me::MeView,
};

/// Shows who is signed in
///
/// As `GET /me`: 401 without a session.
#[utoipa::path(
    get,
    path = "/api/v1/session",
    operation_id = "get_session",
    tag = "session",
    responses((status = 200, description = "Organization, user and key of the caller", body = MeView))
)]
pub async fn handle(call: Call<AnyScope, NoBody>) -> ApiResult<Json<MeView>> {
    Ok(Json(identify(call.ports(), &call.actor).await?.into()))
}
