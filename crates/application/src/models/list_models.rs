//! Lists models, and the versions of one.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use labdata_ports::models::ModelFilter;

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The newest version of each model that matches, newest model first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_models(
    services: &Services,
    actor: &Actor,
    filter: ModelFilter,
    page: PageRequest,
) -> Result<Held<Page<ModelVersion>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let models = &services.models;
    let value = models.list(actor.organization, filter, page).await?;
    Ok(Held { value, slots })
}

/// The versions of a model, newest first.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_model_versions(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    page: PageRequest,
) -> Result<Held<Page<ModelVersion>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let value = services
        .models
        .versions(actor.organization, id, page)
        .await?;
    Ok(Held { value, slots })
}
