//! Lists datasets.

use labdata_domain::{
    models::Dataset,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Ports};

/// The organization's datasets, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_datasets(
    ports: &Ports,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Dataset>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.datasets.list(actor.organization, page).await?)
}
