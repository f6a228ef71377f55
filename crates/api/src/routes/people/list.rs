//! `GET /api/v1/api-keys`

use labdata_application::people::list_api_keys::list_api_keys;

use super::ApiKeyView;
use crate::http::{Admin, ApiResult, Call, Listing, NoBody, PageQuery};

/// Lists API keys, newest first
///
/// Revoked and expired keys included, without their secrets. By pages of `limit`; the header `Link`
/// names the next page.
#[utoipa::path(
    get,
    path = "/api/v1/api-keys",
    operation_id = "list_api_keys",
    tag = "api-keys",
    responses((status = 200, description = "The keys, without their secrets", body = Vec<ApiKeyView>))
)]
pub async fn handle(call: Call<Admin, NoBody, PageQuery>) -> ApiResult<Listing<ApiKeyView>> {
    let page = list_api_keys(call.ports(), &call.actor, call.query.page).await?;
    Ok(Listing::of(page, Into::into))
}
