//! Archives a model, and restores it.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    people::{actor::Actor, scope::Scope},
};

use labdata_ports::models::RestoreModelError;

use crate::{Error, Services};

/// Archives a model and cancels its trainings; returns its newest version.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn archive_model(
    services: &Services,
    actor: &Actor,
    id: ModelId,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Write)?;
    let now = services.clock.now();
    Ok(services.models.archive(actor.organization, id, now).await?)
}

/// Makes an archived model an active one again; returns its newest version.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`; `Invalid` if another model has the name.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn restore_model(
    services: &Services,
    actor: &Actor,
    id: ModelId,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Write)?;
    let restored = services.models.restore(actor.organization, id).await;
    restored.map_err(|error| match error {
        RestoreModelError::NameTaken(taken) => Error::refused(taken),
        RestoreModelError::Port(error) => error.into(),
    })
}
