//! `GET /api/v1/ml-models/{ml_model_id}/versions`

use labdata_application::models::list_models::list_model_versions;
use labdata_application::slots::Work;
use labdata_domain::refusal::Resource;

use super::{ModelPath, ModelView, list::ListModelsQuery};
use crate::http::{ApiResult, Call, Listing, NoBody, OrNotFound, Read};

/// Lists the versions of a model, newest first
///
/// All of them, unless `limit` is given.
#[utoipa::path(
    get,
    path = "/api/v1/ml-models/{ml_model_id}/versions",
    operation_id = "list_ml_model_versions",
    tag = "ml-models",
    responses((status = 200, description = "The versions", body = Vec<ModelView>))
)]
pub async fn handle(
    call: Call<Read, NoBody, ListModelsQuery, ModelPath>,
) -> ApiResult<Listing<ModelView>> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let slot = call
        .app
        .ports
        .slots
        .enter(Work::Page, call.actor.organization)
        .await?;
    let page = list_model_versions(call.ports(), &call.actor, id, call.query.page).await?;
    Ok(Listing::of(page, Into::into).counted(slot))
}
