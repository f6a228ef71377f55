//! Registers an instrument.

use labdata_domain::{
    ids::InstrumentId,
    instruments::{Instrument, check_name},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// The instrument to register.
#[derive(Clone, Debug)]
pub struct CreateInstrument {
    /// Its name, unique within the organization.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Its kind.
    pub instrument_type: Option<String>,
}

/// Registers an instrument.
///
/// # Errors
/// `Forbidden` without the admin scope; `Conflict` when the name is taken.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_instrument(
    services: &Services,
    actor: &Actor,
    command: CreateInstrument,
) -> Result<Instrument, Error> {
    actor.require(Scope::Admin)?;
    require_reserve(services)?;
    check_name(&command.name).map_err(Error::refused)?;
    let instrument = Instrument {
        id: InstrumentId::new(services.ids.next_id()),
        name: command.name,
        description: command.description,
        instrument_type: command.instrument_type,
        created_at: services.clock.now(),
    };
    services
        .instruments
        .add(actor.organization, &instrument)
        .await?;
    Ok(instrument)
}
