//! Changes an instrument.

use labdata_domain::{
    ids::InstrumentId,
    instruments::{Instrument, InstrumentChange, check_name},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Changes an instrument. Its files stay its files.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` when the name
/// is blank; `Conflict` when another instrument has it.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_instrument(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
    change: InstrumentChange,
) -> Result<Instrument, Error> {
    actor.require(Scope::Admin)?;
    require_reserve(services)?;
    if let Some(name) = &change.name {
        check_name(name).map_err(Error::refused)?;
    }
    let changed = services.instruments.update(actor.organization, id, &change);
    Ok(changed.await?)
}
