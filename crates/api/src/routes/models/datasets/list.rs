//! `GET /api/v1/datasets`

use labdata_application::models::list_datasets::list_datasets;
use labdata_application::slots::Work;

use super::DatasetView;
use crate::http::{ApiResult, Call, Listing, NoBody, PageQuery, Read};

/// Lists datasets, newest first
///
/// By pages of `limit`; the header `Link` names the next page.
#[utoipa::path(
    get,
    path = "/api/v1/datasets",
    operation_id = "list_datasets",
    tag = "datasets",
    responses((status = 200, description = "The datasets", body = Vec<DatasetView>))
)]
pub async fn handle(call: Call<Read, NoBody, PageQuery>) -> ApiResult<Listing<DatasetView>> {
    let slot = call
        .app
        .ports
        .slots
        .enter(Work::Page, call.actor.organization)
        .await?;
    let page = list_datasets(call.ports(), &call.actor, call.query.page).await?;
    Ok(Listing::of(page, Into::into).counted(slot))
}
