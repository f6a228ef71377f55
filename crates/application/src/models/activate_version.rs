//! Chooses the version of a model that responds to predictions.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::models::ActivateModelError;

use crate::{Error, Services};

/// Makes a ready version the active one; returns it.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` for an unknown model or version;
/// `Invalid` for a version that is not ready, and for an archived model.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn activate_version(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: u32,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Write)?;
    let activated = services
        .models
        .activate(actor.organization, id, number)
        .await;
    activated.map_err(|error| match error {
        ActivateModelError::Refused(refusal) => Error::refused(refusal),
        ActivateModelError::Archived(refusal) => Error::refused(refusal),
        ActivateModelError::Port(error) => error.into(),
    })
}
