//! Shows a dataset.

use labdata_domain::{
    ids::DatasetId,
    models::Dataset,
    people::{actor::Actor, scope::Scope},
};

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
    Ok(services.datasets.get(actor.organization, id).await?)
}
