//! Registers an instrument.

use labdata_domain::{
    ids::InstrumentId,
    instruments::{Instrument, check_reader, check_timezone},
    names::Named,
    people::{actor::Actor, scope::Scope},
};

use super::reader_job::{check_reader_job, ensure_reader_job};
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
    /// Reader of its files.
    pub reader: Option<String>,
    /// Time zone of its files' times.
    pub timezone: Option<String>,
}

/// Registers an instrument. Where it has a reader, the built-in job that reads files is created unless the
/// organization has it.
///
/// # Errors
/// `Forbidden` without the admin scope; `Invalid` for a name that is not one line of text, an unknown reader or time zone; `Conflict` when the name is taken.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_instrument(
    services: &Services,
    actor: &Actor,
    command: CreateInstrument,
) -> Result<Instrument, Error> {
    actor.require(Scope::Admin)?;
    require_reserve(services)?;
    let name = Named::Instrument
        .parse(&command.name)
        .map_err(Error::refused)?;
    let reader = command.reader.filter(|name| !name.is_empty());
    let timezone = command.timezone.filter(|name| !name.is_empty());
    check_reading(reader.as_deref(), timezone.as_deref())?;
    let instrument = Instrument {
        id: InstrumentId::new(services.ids.next_id()),
        name: name.into(),
        description: command.description,
        instrument_type: command.instrument_type,
        reader,
        timezone,
        last_reader: None,
        created_at: services.clock.now(),
    };
    if instrument.reader.is_some() {
        // Before the instrument is stored, so that none stays whose reader has no job.
        check_reader_job(services, actor).await?;
    }
    services
        .instruments
        .add(actor.organization, &instrument)
        .await?;
    if instrument.reader.is_some() {
        ensure_reader_job(services, actor).await?;
    }
    Ok(instrument)
}

/// Checks reader and time zone.
pub(super) fn check_reading(reader: Option<&str>, timezone: Option<&str>) -> Result<(), Error> {
    if let Some(reader) = reader {
        check_reader(reader).map_err(Error::refused)?;
    }
    if let Some(timezone) = timezone {
        check_timezone(timezone).map_err(Error::refused)?;
    }
    Ok(())
}
