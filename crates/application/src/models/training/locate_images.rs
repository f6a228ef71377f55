//! Signs URLs of the images that a training reads.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use labdata_domain::{files::FileState, ids::FileId};
use labdata_ports::{PortError, files::blob::DownloadGrant};
use serde::Deserialize;
use time::Duration;

use super::running_training::RunningTraining;
use crate::{Error, Ports};

/// Maximum number of images in a request.
const MAX_IMAGES: usize = 500;

/// Number of files that are looked up at a time.
const CONCURRENT_LOOKUPS: usize = 4;

/// Time in which the training fetches the images.
const URL_LIFETIME: Duration = Duration::hours(1);

/// Body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImagesBody {
    images: Vec<String>,
}

/// Returns URLs of files of the training's organization by their ids. Ids of no confirmed file are left
/// out.
///
/// # Errors
/// [`Error::Invalid`] for a body that is no list of at most 500 ids; errors of the ports.
pub async fn locate_images(
    ports: &Ports,
    training: &RunningTraining,
    body: &[u8],
) -> Result<BTreeMap<String, String>, Error> {
    let body: ImagesBody =
        serde_json::from_slice(body).map_err(|error| Error::Invalid(error.to_string()))?;
    if body.images.len() > MAX_IMAGES {
        let text = format!("a request names at most {MAX_IMAGES} images");
        return Err(Error::Invalid(text));
    }
    let located = stream::iter(body.images).map(|id| async move {
        let url = locate(ports, training, &id).await?;
        Ok::<_, Error>(url.map(|url| (id, url)))
    });
    located
        .buffer_unordered(CONCURRENT_LOOKUPS)
        .try_filter_map(async |found| Ok(found))
        .try_collect()
        .await
}

async fn locate(
    ports: &Ports,
    training: &RunningTraining,
    id: &str,
) -> Result<Option<String>, Error> {
    let organization = training.claim.organization;
    let Ok(id) = id.parse::<FileId>() else {
        return Ok(None);
    };
    let file = match ports.files.get(organization, id).await {
        Err(PortError::NotFound(_)) => return Ok(None),
        found => found?,
    };
    let FileState::Confirmed { object, .. } = file.state else {
        return Ok(None);
    };
    let grant = DownloadGrant {
        object,
        path: file.path,
        content_type: file.content_type,
        expires_at: ports.clock.now() + URL_LIFETIME,
    };
    let url = ports.gateway.sign_download(organization, &grant).await?;
    Ok(Some(url))
}
