//! `GET /api/v1/notifications/unread-count`

use labdata_application::{Error, notifications::list_notifications::count_unread_notifications};
use labdata_request_body::output;

use crate::{About, Call, Method, Operation, Read, Tag};

output! {
    /// Number of unread notifications.
    #[derive(Clone, Copy, Debug)]
    pub struct UnreadCountView as "UnreadCount" {
        /// Number of unread notifications.
        unread: u64,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "count_unread_notifications",
        method: Method::Get,
        path: "/api/v1/notifications/unread-count",
        tag: Tag::Notifications,
        summary: "Counts the caller's unread notifications",
        description: "Counts notifications in the inbox whose `read_at` is null.",
        returns: "How many are unread",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read>) -> Result<UnreadCountView, Error> {
    let unread = count_unread_notifications(&call.services, &call.actor).await?;
    Ok(UnreadCountView { unread })
}
