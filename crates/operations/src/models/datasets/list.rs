//! `GET /api/v1/datasets`

use labdata_application::{Error, models::list_datasets::list_datasets};

use super::DatasetView;
use crate::{
    About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag, tools::ToolFacts,
};

pub(super) fn operation() -> Operation {
    About {
        name: "list_datasets",
        method: Method::Get,
        path: "/api/v1/datasets",
        tag: Tag::Datasets,
        summary: "Lists datasets, newest first",
        description: "By pages of `limit`; the header `Link` names the next page.",
        returns: "The datasets",
        refusals: &[],
    }
    .runs(run)
    .tool(ToolFacts::of(
        "Lists datasets, which models are trained on, with their columns, newest first.",
    ))
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<DatasetView>, Error> {
    let page = list_datasets(&call.services, &call.actor, call.query.page).await?;
    Ok(page.into())
}
