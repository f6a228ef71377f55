//! `GET /api/v1/ml-models`

use labdata_application::{Error, models::list_models::list_models};

use super::{ListModelsQuery, ModelView};
use crate::{About, Call, Listing, Method, NoBody, Operation, Read, Tag, tools::ToolFacts};

pub(super) fn operation() -> Operation {
    About {
        name: "list_ml_models",
        method: Method::Get,
        path: "/api/v1/ml-models",
        tag: Tag::MlModels,
        summary: "Lists models, newest first",
        description: "The newest version of each model that is not archived: all of them, unless `limit` is \
            given.",
        returns: "The models",
        refusals: &[],
    }
    .runs(run)
    .tool(ToolFacts::of(
        "Lists ML models, each with the newest version: its columns, the state of its training and its \
         metrics.",
    ))
}

async fn run(call: Call<Read, NoBody, ListModelsQuery>) -> Result<Listing<ModelView>, Error> {
    let page = list_models(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
