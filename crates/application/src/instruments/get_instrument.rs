//! Shows an instrument.

use labdata_domain::{
    ids::InstrumentId,
    instruments::Instrument,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// One of the organization's instruments.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_instrument(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
) -> Result<Instrument, Error> {
    actor.require(Scope::Read)?;
    Ok(services.instruments.get(actor.organization, id).await?)
}
