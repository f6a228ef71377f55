//! Shows a dataset.

use labdata_domain::{
    ids::DatasetId,
    models::Dataset,
    people::{actor::Actor, scope::Scope},
};

use super::visible_datasets::visible_dataset;
use crate::{Error, Services};

/// One of the organization's datasets.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_dataset(
    services: &Services,
    actor: &Actor,
    id: DatasetId,
) -> Result<Dataset, Error> {
    actor.require(Scope::Read)?;
    visible_dataset(services, actor, id).await
}
