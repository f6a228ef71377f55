//! Signs URLs of the images that a training reads.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use labdata_domain::{
    ids::FileId,
    refusal::{ErrorCode, Refusal},
};
use serde::Deserialize;

use super::running_training::RunningTraining;
use crate::{
    Error, Services,
    models::gateway_urls::{CONCURRENT_LOOKUPS, sign_image},
};

/// Maximum number of images in a request.
const MAX_IMAGES: usize = 500;

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
/// `Invalid` for a body that is no list of at most 500 ids; errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn locate_images(
    services: &Services,
    training: &RunningTraining,
    body: &[u8],
) -> Result<BTreeMap<String, String>, Error> {
    let body: ImagesBody = serde_json::from_slice(body)
        .map_err(|error| Refusal::invalid(ErrorCode::InvalidReport, error.to_string()))?;
    if body.images.len() > MAX_IMAGES {
        let text = format!("a request names at most {MAX_IMAGES} images");
        return Err(Refusal::invalid(ErrorCode::InvalidReport, text).into());
    }
    let located = stream::iter(body.images).map(|id| async move {
        // Ids are cells of the dataset, which may hold any text.
        let Ok(file) = id.parse::<FileId>() else {
            return Ok(None);
        };
        let url = sign_image(services, training.organization, file).await?;
        Ok::<_, Error>(url.map(|url| (id, url)))
    });
    located
        .buffer_unordered(CONCURRENT_LOOKUPS)
        .try_filter_map(async |found| Ok(found))
        .try_collect()
        .await
}
