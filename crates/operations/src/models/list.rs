//! `GET /api/v1/ml-models`

use labdata_application::{Error, models::list_models::list_models};

use labdata_domain::page::PageRequest;
use labdata_ports::models::ModelFilter;
use labdata_request_body::{
    fields::{or, page},
    readers::boolean,
    shape,
};

use super::ModelView;
use crate::{About, Call, Listing, Method, NoBody, Operation, Read, Tag, tools::ToolFacts};

shape! {
    /// Filter of the list of models.
    #[derive(Clone, Copy, Debug)]
    pub struct ListModelsQuery {
        /// Archived models as well as active ones.
        archived: bool = or(false, boolean()),
        page: PageRequest = page(None),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "list_ml_models",
        method: Method::Get,
        path: "/api/v1/ml-models",
        tag: Tag::MlModels,
        summary: "Lists models, newest first",
        description: "The newest version of each model: all that match, unless `limit` is given.",
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
    let filter = ModelFilter {
        include_archived: call.query.archived,
    };
    let page = list_models(&call.services, &call.actor, filter, call.query.page).await?;
    Ok(page.into())
}
