//! Reads a version of a model.

use labdata_domain::{
    ids::ModelId,
    models::ModelVersion,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// The version of that number, or the newest one.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_model(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Read)?;
    Ok(services.models.get(actor.organization, id, number).await?)
}

/// The version of that number, or else the active one, or else the newest one.
pub(super) async fn active_or_newest(
    services: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<ModelVersion, Error> {
    let active = match number {
        Some(_) => None,
        None => services.models.active(actor.organization, id).await?,
    };
    match active {
        Some(active) => Ok(active),
        None => Ok(services.models.get(actor.organization, id, number).await?),
    }
}
