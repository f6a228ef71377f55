//! `GET /api/v1/notifications/unread-count`

use actix_web::web::Json;
use labdata_application::notifications::list_notifications::count_unread_notifications;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{ApiResult, Call, Read};

/// Number of unread notifications.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = UnreadCount)]
pub struct UnreadCountView {
    /// Number of unread notifications.
    unread: u64,
}

/// Counts the caller's unread notifications
///
/// Counts notifications in the inbox whose `read_at` is null.
#[utoipa::path(
    get,
    path = "/api/v1/notifications/unread-count",
    operation_id = "count_unread_notifications",
    tag = "notifications",
    responses((status = 200, description = "How many are unread", body = UnreadCountView))
)]
pub async fn handle(call: Call<Read>) -> ApiResult<Json<UnreadCountView>> {
    let unread = count_unread_notifications(call.ports(), &call.actor).await?;
    Ok(Json(UnreadCountView { unread }))
}
