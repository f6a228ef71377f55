//! Lists models, and the versions of one.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Ports};

/// The newest version of each model that is not archived, newest model first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_models(
    ports: &Ports,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<ModelVersion>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.models.list(actor.organization, page).await?)
}

/// The versions of a model, newest first.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_model_versions(
    ports: &Ports,
    actor: &Actor,
    id: ModelId,
    page: PageRequest,
) -> Result<Page<ModelVersion>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.models.versions(actor.organization, id, page).await?)
}
