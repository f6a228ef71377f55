//! `GET /api/v1/users`

use labdata_application::people::list_users::list_users;

use super::UserView;
use crate::http::{ApiResult, Call, Listing, NoBody, PageQuery, Read};

/// Lists users, newest first
///
/// Disabled ones too.
#[utoipa::path(
    get,
    path = "/api/v1/users",
    operation_id = "list_users",
    tag = "users",
    responses((status = 200, description = "The users", body = Vec<UserView>))
)]
pub async fn handle(call: Call<Read, NoBody, PageQuery>) -> ApiResult<Listing<UserView>> {
    let page = list_users(call.ports(), &call.actor, call.query.page).await?;
    Ok(Listing::of(page, Into::into))
}
