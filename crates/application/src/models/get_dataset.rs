//! Shows a dataset.

use labdata_domain::{
    ids::DatasetId,
    keys::{actor::Actor, scope::Scope},
    models::Dataset,
};

use crate::{Error, Ports};

/// One of the organization's datasets.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope; [`Error::NotFound`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_dataset(ports: &Ports, actor: &Actor, id: DatasetId) -> Result<Dataset, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.datasets.get(actor.organization, id).await?)
}
