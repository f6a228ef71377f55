//! `GET /api/v1/datasets/{dataset_id}/preview`

use labdata_application::{
    Error,
    models::preview_dataset::{DatasetPreview, preview_dataset},
};
use labdata_domain::refusal::Resource;
use labdata_request_body::output;
use serde_json::Value;

use super::DatasetPath;
use crate::{About, Call, Counted, Method, NoBody, Operation, OrNotFound, Read, Tag};

output! {
    /// First rows of a dataset.
    #[derive(Clone, Debug)]
    pub struct DatasetPreviewView as "DatasetPreview" from preview: DatasetPreview {
        /// Number of rows of the whole dataset.
        row_count: u64 = preview.dataset.row_count,
        /// The names of the columns, in order.
        columns: Vec<String> = preview.dataset.columns.into_iter().map(|column| column.name).collect(),
        /// Up to 50 rows, each with one value per column. Texts of more than 1,000 characters are cut and
        /// end in `…`.
        data: Vec<Vec<Value>> = preview.rows,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "preview_dataset",
        method: Method::Get,
        path: "/api/v1/datasets/{dataset_id}/preview",
        tag: Tag::Datasets,
        summary: "Shows the first 50 rows of a dataset",
        description: "Read from the stored snapshot, with one value per column and row.",
        returns: "The rows",
        refusals: &[(
            503,
            "Earlier results of the organization are still being sent",
        )],
    }
    .runs(run)
}

async fn run(
    call: Call<Read, NoBody, (), DatasetPath>,
) -> Result<Counted<DatasetPreviewView>, Error> {
    let id = call.path.dataset_id.or_not_found(Resource::Dataset)?;
    let preview = preview_dataset(&call.services, &call.actor, id).await?;
    Ok(Counted::of(preview, Into::into))
}
