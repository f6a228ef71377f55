//! `PATCH /api/v1/notifications/{id}`

use actix_web::web::Json;
use labdata_application::notifications::mark_notification::mark_notification;
use serde_json::Value;
use utoipa::ToSchema;

use super::{NotificationPath, NotificationView};
use crate::http::{OrNotFound, 
    Answer, Call, JsonBody, Write,
    shape::{Fields, Place, Shape, readers::boolean},
};

/// Whether the notification is read.
#[derive(Clone, Copy, Debug, ToSchema)]
pub struct MarkNotificationBody {
    /// True for read, false for unread. One that is read keeps the time at which it was first.
    read: bool,
}

impl Shape for MarkNotificationBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        Some(Self {
            read: fields.required("read", boolean())?,
        })
    }
}

/// Marks one of the caller's notifications as read or unread
#[utoipa::path(
    patch,
    path = "/api/v1/notifications/{id}",
    operation_id = "mark_notification",
    tag = "notifications",
    params(("id" = String, Path, description = "The notification's id")),
    request_body = MarkNotificationBody,
    responses((status = 200, description = "The notification", body = NotificationView))
)]
pub async fn handle(
    call: Call<Write, JsonBody<MarkNotificationBody>, (), NotificationPath>,
) -> Answer<Json<NotificationView>> {
    let id = call.path.id.or_not_found("notification")?;
    let marked = mark_notification(call.ports(), &call.actor, id, call.body.0.read).await?;
    Ok(Json(marked.into()))
}
