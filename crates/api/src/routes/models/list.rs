//! `GET /api/v1/ml-models`

use labdata_application::models::list_models::list_models;
use labdata_application::slots::Work;
use labdata_domain::page::PageRequest;
use labdata_request_body::{fields::page, shape};

use super::ModelView;
use crate::http::{ApiResult, Call, Listing, NoBody, Read};

shape! {
    /// Page of the list of models.
    #[derive(Clone, Debug)]
    pub struct ListModelsQuery {
        pub(super) page: PageRequest = page(None),
    }
}

/// Lists models, newest first
///
/// The newest version of each model that is not archived: all of them, unless `limit` is given.
#[utoipa::path(
    get,
    path = "/api/v1/ml-models",
    operation_id = "list_ml_models",
    tag = "ml-models",
    responses((status = 200, description = "The models", body = Vec<ModelView>))
)]
pub async fn handle(call: Call<Read, NoBody, ListModelsQuery>) -> ApiResult<Listing<ModelView>> {
    let slot = call
        .app
        .ports
        .slots
        .enter(Work::Page, call.actor.organization)
        .await?;
    let page = list_models(call.ports(), &call.actor, call.query.page).await?;
    Ok(Listing::of(page, Into::into).counted(slot))
}
