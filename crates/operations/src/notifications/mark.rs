//! `PATCH /api/v1/notifications/{id}`

use labdata_application::{Error, notifications::mark_notification::mark_notification};
use labdata_domain::refusal::Resource;
use labdata_request_body::{fields::required, readers::boolean, shape};
use serde_json::json;

use super::{NotificationPath, NotificationView};
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

shape! {
    /// The state of a notification.
    #[derive(Clone, Copy, Debug)]
    pub struct MarkNotificationBody {
        /// True for read, false for unread. One that is read retains the time at which it was first.
        read: bool = required(boolean()),
    }
    example json!({"read": true});
}

pub(super) fn operation() -> Operation {
    About {
        name: "mark_notification",
        method: Method::Patch,
        path: "/api/v1/notifications/{id}",
        tag: Tag::Notifications,
        summary: "Marks one of the caller's notifications as read or unread",
        description: "Sets or clears `read_at`.",
        returns: "The notification",
        refusals: &[],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, JsonBody<MarkNotificationBody>, (), NotificationPath>,
) -> Result<NotificationView, Error> {
    let id = call.path.id.or_not_found(Resource::Notification)?;
    let marked = mark_notification(&call.services, &call.actor, id, call.body.read).await?;
    Ok(marked.into())
}
