//! Reads the result of a training.

use labdata_domain::{
    ids::ModelId,
    models::{ModelVersion, TrainingResult},
    people::{actor::Actor, scope::Scope},
};

use super::get_model::active_or_newest;
use crate::{Error, Services};

/// A ready version with the result of its training: that of the number, or else the active one.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` for a version
/// that is not ready.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_result(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<(ModelVersion, TrainingResult), Error> {
    actor.require(Scope::Read)?;
    let version = active_or_newest(services, actor, id, number).await?;
    let models = &services.models;
    match models
        .result(actor.organization, id, version.number)
        .await?
    {
        Some(result) => Ok((version, result)),
        None => Err(Error::refused(version.not_ready("results"))),
    }
}
