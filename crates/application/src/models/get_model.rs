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
    ports: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<ModelVersion, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.models.get(actor.organization, id, number).await?)
}

/// The version of that number, or else the active one, or else the newest one.
pub(super) async fn active_or_newest(
    ports: &Services,
    actor: &Actor,
    id: ModelId,
    number: Option<u32>,
) -> Result<ModelVersion, Error> {
    let active = match number {
        Some(_) => None,
        None => ports.models.active(actor.organization, id).await?,
    };
    match active {
        Some(active) => Ok(active),
        None => Ok(ports.models.get(actor.organization, id, number).await?),
    }
}
