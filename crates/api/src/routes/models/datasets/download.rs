//! `GET /api/v1/datasets/{dataset_id}/download`

use actix_web::web::Json;
use labdata_application::models::get_dataset_download::{DatasetDownload, get_dataset_download};
use labdata_domain::refusal::Resource;
use serde::Serialize;
use utoipa::ToSchema;

use super::DatasetPath;
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Where the rows of a dataset are.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = DatasetDownload)]
pub struct DatasetDownloadView {
    /// Id of the dataset.
    dataset_id: String,
    /// Name under which the file is saved.
    #[schema(example = "wine.parquet")]
    file_name: String,
    /// Size of the file in bytes.
    size_bytes: u64,
    /// URL of the Parquet file, valid for 15 minutes without a key.
    download_url: String,
}

impl From<DatasetDownload> for DatasetDownloadView {
    fn from(download: DatasetDownload) -> Self {
        Self {
            dataset_id: download.dataset.id.to_string(),
            file_name: download.file_name.as_str().to_owned(),
            size_bytes: download.dataset.size,
            download_url: download.download_url,
        }
    }
}

/// Signs a URL of a dataset's rows, as Parquet
///
/// The columns are int64, float64, bool, timestamp\[µs, UTC\], date32, and utf8 for all else, JSON
/// included.
#[utoipa::path(
    get,
    path = "/api/v1/datasets/{dataset_id}/download",
    operation_id = "get_dataset_download",
    tag = "datasets",
    responses((status = 200, description = "The URL", body = DatasetDownloadView))
)]
pub async fn handle(
    call: Call<Read, NoBody, (), DatasetPath>,
) -> ApiResult<Json<DatasetDownloadView>> {
    let id = call.path.dataset_id.or_not_found(Resource::Dataset)?;
    let mut download = get_dataset_download(call.ports(), &call.actor, id).await?;
    download.download_url = call.localize(download.download_url);
    Ok(Json(download.into()))
}
