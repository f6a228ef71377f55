//! `GET /api/v1/notifications`

use labdata_application::{Error, notifications::list_notifications::list_notifications};
use labdata_domain::page::{DEFAULT_LIMIT, PageRequest};
use labdata_request_body::{
    fields::{optional, page},
    readers::boolean,
    shape,
};

use super::NotificationView;
use crate::{About, Call, Listing, Method, NoBody, Operation, Read, Tag};

shape! {
    /// Filters of the list of notifications.
    #[derive(Clone, Copy, Debug)]
    pub struct ListNotificationsQuery {
        /// True: only those that are unread; false: only those that are read. All unless given.
        unread: Option<bool> = optional(boolean()),
        page: PageRequest = page(Some(DEFAULT_LIMIT)),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "list_notifications",
        method: Method::Get,
        path: "/api/v1/notifications",
        tag: Tag::Notifications,
        summary: "Lists the caller's notifications, newest first",
        description: "By pages of `limit`; the header `Link` names the next page.",
        returns: "The notifications",
        refusals: &[],
    }
    .runs(run)
}

async fn run(
    call: Call<Read, NoBody, ListNotificationsQuery>,
) -> Result<Listing<NotificationView>, Error> {
    let ListNotificationsQuery { unread, page } = call.query;
    let page = list_notifications(&call.services, &call.actor, unread, page).await?;
    Ok(page.into())
}
