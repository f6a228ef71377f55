//! `GET /api/v1/datasets/{dataset_id}`

use labdata_application::{Error, models::get_dataset::get_dataset};
use labdata_domain::refusal::Resource;

use super::{DatasetPath, DatasetView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_dataset",
        method: Method::Get,
        path: "/api/v1/datasets/{dataset_id}",
        tag: Tag::Datasets,
        summary: "Reads one dataset: its columns, without its rows",
        description: "The columns with their data types and their number of distinct values, and the number \
            of rows.",
        returns: "The dataset",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), DatasetPath>) -> Result<DatasetView, Error> {
    let id = call.path.dataset_id.or_not_found(Resource::Dataset)?;
    Ok(get_dataset(&call.services, &call.actor, id).await?.into())
}
