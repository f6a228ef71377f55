//! `GET /api/v1/notification-preferences`

use actix_web::web::Json;
use labdata_application::notifications::notification_preferences::get_preferences;

use super::PreferencesView;
use crate::http::{ApiResult, Call, Read};

/// Shows by which ways the caller wants notifications
///
/// By category and channel.
#[utoipa::path(
    get,
    path = "/api/v1/notification-preferences",
    operation_id = "get_notification_preferences",
    tag = "notifications",
    responses((status = 200, description = "The preferences", body = PreferencesView))
)]
pub async fn handle(call: Call<Read>) -> ApiResult<Json<PreferencesView>> {
    let preferences = get_preferences(call.ports(), &call.actor).await?;
    Ok(Json(preferences.into()))
}
