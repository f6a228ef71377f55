//! Changes an instrument.

use labdata_domain::{
    ids::InstrumentId,
    instruments::{Instrument, InstrumentChange},
    names::Named,
    people::{actor::Actor, scope::Scope},
};

use super::{
    create_instrument::check_reading,
    reader_job::{check_reader_job, ensure_reader_job},
};
use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Changes an instrument. Its files stay its files. Where a reader is set, the built-in job that reads files is
/// created unless the organization has it.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` when the name
/// is not one line of text, or reader or time zone are unknown; `Conflict` when another instrument has it.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_instrument(
    services: &Services,
    actor: &Actor,
    id: InstrumentId,
    mut change: InstrumentChange,
) -> Result<Instrument, Error> {
    actor.require(Scope::Admin)?;
    require_reserve(services)?;
    if let Some(name) = &mut change.name {
        *name = Named::Instrument
            .parse(name)
            .map_err(Error::refused)?
            .into();
    }
    check_reading(change.reader.as_deref(), change.timezone.as_deref())?;
    if change.reader.is_some() {
        // Before the change is stored, so that no instrument stays whose reader has no job.
        check_reader_job(services, actor).await?;
    }
    let changed = services.instruments.update(actor.organization, id, &change);
    let changed = changed.await?;
    if change.reader.is_some() && changed.reader.is_some() {
        ensure_reader_job(services, actor).await?;
    }
    Ok(changed)
}
