//! `GET /api/v1/datasets/{dataset_id}/download`

use labdata_application::{
    Error,
    models::get_dataset_download::{DatasetDownload, get_dataset_download},
};
use labdata_domain::{ids::DatasetId, refusal::Resource};
use labdata_request_body::output;

use super::DatasetPath;
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

output! {
    /// Address of the rows of a dataset.
    #[derive(Clone)]
    pub struct DatasetDownloadView as "DatasetDownload" from download: DatasetDownload {
        /// Id of the dataset.
        dataset_id: DatasetId = download.dataset.id,
        /// Name under which the file is saved.
        #[example = "wine.parquet"]
        file_name: String = download.file_name.as_str().to_owned(),
        /// Size of the file in bytes.
        size_bytes: u64 = download.dataset.size,
        /// URL of the Parquet file, valid for 15 minutes without a key.
        download_url: String = download.download_url,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_dataset_download",
        method: Method::Get,
        path: "/api/v1/datasets/{dataset_id}/download",
        tag: Tag::Datasets,
        summary: "Signs a URL of a dataset's rows, as Parquet",
        description: r"The columns are int64, float64, bool, timestamp\[µs, UTC\], date32, and utf8 for all else, JSON included.",
        returns: "The URL",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), DatasetPath>) -> Result<DatasetDownloadView, Error> {
    let id = call.path.dataset_id.or_not_found(Resource::Dataset)?;
    let mut download = get_dataset_download(&call.services, &call.actor, id).await?;
    download.download_url = call.base_url.localize(download.download_url);
    Ok(download.into())
}
