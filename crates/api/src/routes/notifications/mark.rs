//! `PATCH /api/v1/notifications/{id}`

use actix_web::web::Json;
use labdata_application::notifications::mark_notification::mark_notification;
use labdata_request_body::{fields::required, readers::boolean, shape};
use serde_json::json;

use super::{NotificationPath, NotificationView};
use crate::http::{ApiResult, Call, JsonBody, OrNotFound, Write};

shape! {
    /// The state of a notification.
    #[derive(Clone, Copy, Debug)]
    pub struct MarkNotificationBody {
        /// True for read, false for unread. One that is read keeps the time at which it was first.
        read: bool = required(boolean()),
    }
    example json!({"read": true});
}

/// Marks one of the caller's notifications as read or unread
///
/// Sets or clears `read_at`.
#[utoipa::path(
    patch,
    path = "/api/v1/notifications/{id}",
    operation_id = "mark_notification",
    tag = "notifications",
    responses((status = 200, description = "The notification", body = NotificationView))
)]
pub async fn handle(
    call: Call<Write, JsonBody<MarkNotificationBody>, (), NotificationPath>,
) -> ApiResult<Json<NotificationView>> {
    let id = call.path.id.or_not_found("notification")?;
    let marked = mark_notification(call.ports(), &call.actor, id, call.body.0.read).await?;
    Ok(Json(marked.into()))
}
