//! Signs URLs of the images in rows to predict.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};
use labdata_domain::{
    ids::{FileId, OrganizationId},
    models::{FeatureValues, InvalidRows, PredictionInput, RowProblem},
};
use labdata_ports::models::PredictError;

use super::prediction_error::PredictionError;
use crate::{
    Error, Services,
    models::gateway_urls::{CONCURRENT_LOOKUPS, sign_image},
};

/// Returns a URL for each image in the rows.
pub(super) async fn image_urls(
    services: &Services,
    organization: OrganizationId,
    input: &PredictionInput,
) -> Result<BTreeMap<FileId, String>, PredictionError> {
    // Rows may share an image, which needs one URL.
    let files: BTreeSet<FileId> = images(input)
        .flat_map(|(_, files)| files)
        .copied()
        .collect();
    let signed = stream::iter(files).map(|file| async move {
        let url = sign_image(services, organization, file).await?;
        Ok::<_, Error>((file, url))
    });
    let signed: Vec<(FileId, Option<String>)> = signed
        .buffer_unordered(CONCURRENT_LOOKUPS)
        .try_collect()
        .await?;
    let urls: BTreeMap<FileId, String> = signed
        .into_iter()
        .filter_map(|(file, url)| Some((file, url?)))
        .collect();
    let mut missing: Vec<RowProblem> = images(input)
        .flat_map(|(column, files)| {
            let rows = files.iter().enumerate();
            let missing = rows.filter(|(_, file)| !urls.contains_key(file));
            missing.map(|(row, file)| RowProblem::no_such_file(row, column, *file))
        })
        .collect();
    // Collected by column, reported by row, as other problems are.
    missing.sort_by_key(|problem| problem.row);
    let missing: InvalidRows = missing.into_iter().collect();
    Ok(missing.unless_any(urls).map_err(PredictError::from)?)
}

/// Returns the columns of images.
fn images(input: &PredictionInput) -> impl Iterator<Item = (&str, &Vec<FileId>)> {
    input
        .columns
        .iter()
        .filter_map(|column| match &column.values {
            FeatureValues::Images(files) => Some((&*column.name, files)),
            _ => None,
        })
}
