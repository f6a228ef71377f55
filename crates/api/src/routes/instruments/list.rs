//! `GET /api/v1/instruments`

use labdata_application::instruments::list_instruments::list_instruments;

use super::InstrumentView;
use crate::http::{ApiResult, Call, Listing, NoBody, PageQuery, Read};

/// Lists instruments, newest first
///
/// By pages of `limit`; the header `Link` names the next page.
#[utoipa::path(
    get,
    path = "/api/v1/instruments",
    operation_id = "list_instruments",
    tag = "instruments",
    responses((status = 200, description = "The instruments", body = Vec<InstrumentView>))
)]
pub async fn handle(call: Call<Read, NoBody, PageQuery>) -> ApiResult<Listing<InstrumentView>> {
    let page = list_instruments(call.ports(), &call.actor, call.query.page).await?;
    Ok(Listing::of(page, Into::into))
}
