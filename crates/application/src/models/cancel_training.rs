//! Cancels the trainings of a model.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::models::CancelTrainingError;

use crate::{Error, Services};

/// Cancels every version that is pending or training; returns the newest version. Workers stop the
/// processes.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`; `Invalid` when nothing
/// is in flight.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn cancel_training(
    services: &Services,
    actor: &Actor,
    id: ModelId,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Write)?;
    let now = services.clock.now();
    let cancelled = services.models.cancel(actor.organization, id, now).await;
    cancelled.map_err(|error| match error {
        CancelTrainingError::Refused(refusal) => Error::refused(refusal),
        CancelTrainingError::Port(error) => error.into(),
    })
}
