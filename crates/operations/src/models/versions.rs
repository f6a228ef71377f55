//! `GET /api/v1/ml-models/{ml_model_id}/versions`

use labdata_application::{Error, models::list_models::list_model_versions};
use labdata_domain::refusal::Resource;

use super::{ListVersionsQuery, ModelPath, ModelView};
use crate::{About, Call, Listing, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_ml_model_versions",
        method: Method::Get,
        path: "/api/v1/ml-models/{ml_model_id}/versions",
        tag: Tag::MlModels,
        summary: "Lists the versions of a model, newest first",
        description: "All of them, unless `limit` is given.",
        returns: "The versions",
        refusals: &[],
    }
    .runs(run)
}

async fn run(
    call: Call<Read, NoBody, ListVersionsQuery, ModelPath>,
) -> Result<Listing<ModelView>, Error> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let page = list_model_versions(&call.services, &call.actor, id, call.query.page).await?;
    Ok(page.into())
}
