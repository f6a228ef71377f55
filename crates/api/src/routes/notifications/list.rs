//! `GET /api/v1/notifications`

use labdata_application::notifications::list_notifications::list_notifications;
use labdata_domain::page::{DEFAULT_LIMIT, PageRequest};
use labdata_request_body::{
    fields::{or, page},
    readers::boolean,
    shape,
};

use super::NotificationView;
use crate::http::{ApiResult, Call, Listing, NoBody, Read};

shape! {
    /// Filters of the list of notifications.
    #[derive(Clone, Copy, Debug)]
    pub struct ListNotificationsQuery {
        /// Only those that are unread.
        unread: bool = or(false, boolean()),
        page: PageRequest = page(Some(DEFAULT_LIMIT)),
    }
}

/// Lists the caller's notifications, newest first
///
/// By pages of `limit`; the header `Link` names the next page.
#[utoipa::path(
    get,
    path = "/api/v1/notifications",
    operation_id = "list_notifications",
    tag = "notifications",
    responses((status = 200, description = "The notifications", body = Vec<NotificationView>))
)]
pub async fn handle(
    call: Call<Read, NoBody, ListNotificationsQuery>,
) -> ApiResult<Listing<NotificationView>> {
    let ListNotificationsQuery { unread, page } = call.query;
    let slot = call.app.page_slot(call.actor.organization).await?;
    let page = list_notifications(call.ports(), &call.actor, unread, page).await?;
    Ok(Listing::of(page, NotificationView::from).counted(slot))
}
