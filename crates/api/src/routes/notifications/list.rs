//! `GET /api/v1/notifications`

use labdata_application::notifications::list_notifications::list_notifications;
use labdata_domain::page::{DEFAULT_LIMIT, PageRequest};
use serde_json::Value;
use utoipa::IntoParams;

use super::NotificationView;
use crate::http::{
    Answer, Call, Listing, NoBody, PageQuery, Read,
    shape::{Fields, Place, Shape, readers::boolean},
};

/// Which notifications are wanted.
#[derive(Clone, Copy, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListNotificationsQuery {
    /// Only those that are unread.
    #[param(value_type = Option<bool>)]
    unread: bool,
    #[param(ignore)]
    page: PageRequest,
}

impl Shape for ListNotificationsQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let unread = fields.or("unread", false, boolean());
        let page = PageQuery::from_fields(&mut fields, Some(DEFAULT_LIMIT));
        Some(Self {
            unread: unread?,
            page: page?,
        })
    }
}

/// Lists the caller's notifications, newest first
#[utoipa::path(
    get,
    path = "/api/v1/notifications",
    operation_id = "list_notifications",
    tag = "notifications",
    params(ListNotificationsQuery, PageQuery),
    responses((status = 200, description = "The notifications", body = Vec<NotificationView>))
)]
pub async fn handle(
    call: Call<Read, NoBody, ListNotificationsQuery>,
) -> Answer<Listing<NotificationView>> {
    let ListNotificationsQuery { unread, page } = call.query;
    let page = list_notifications(call.ports(), &call.actor, unread, page).await?;
    Ok(Listing::of(page, NotificationView::from))
}
