//! Archives a model.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    people::{actor::Actor, scope::Scope},
};

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
