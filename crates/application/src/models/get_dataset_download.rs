//! Gives out a URL of a dataset's rows.

use std::fmt;

use labdata_domain::{
    files::{ContentType, DOWNLOAD_URL_LIFETIME, FilePath},
    ids::DatasetId,
    models::Dataset,
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::files::blob::DownloadGrant;

use super::visible_datasets::visible_dataset;
use crate::{Error, Services};

/// Content type of Parquet.
const PARQUET: &str = "application/vnd.apache.parquet";

/// A dataset and a URL of its rows.
#[derive(Clone)]
pub struct DatasetDownload {
    /// The dataset.
    pub dataset: Dataset,
    /// Name under which the rows are saved.
    pub file_name: FilePath,
    /// Signed URL of the Parquet file, valid without a key until it expires.
    pub download_url: String,
}

impl fmt::Debug for DatasetDownload {
    /// Without the URL, which is a permission.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetDownload")
            .field("dataset", &self.dataset)
            .finish_non_exhaustive()
    }
}

/// Signs a URL of a dataset's Parquet file.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_dataset_download(
    services: &Services,
    actor: &Actor,
    id: DatasetId,
) -> Result<DatasetDownload, Error> {
    actor.require(Scope::Read)?;
    let dataset = visible_dataset(services, actor, id).await?;
    let file_name = dataset.file_name();
    let grant = DownloadGrant {
        object: dataset.object,
        path: file_name.clone(),
        content_type: ContentType::substitute(Some(PARQUET)),
        expires_at: services.clock.now() + DOWNLOAD_URL_LIFETIME,
    };
    let download_url = services
        .signer
        .sign_download(actor.organization, &grant)
        .await?;
    Ok(DatasetDownload {
        dataset,
        file_name,
        download_url,
    })
}
