//! Instruments in memory.

pub(crate) mod devices;
mod file_reader;
pub(crate) mod images;

use async_trait::async_trait;
use labdata_domain::{
    files::File,
    ids::{InstrumentId, OrganizationId},
    instruments::{Instrument, InstrumentChange},
    jobs::Job,
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{PortError, instruments::InstrumentRepository};

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

pub use file_reader::ScriptedFileReader;

fake!(
    /// Instruments in memory.
    pub struct InMemoryInstrumentRepository;
);

impl State {
    /// Returns true if the instrument has a reader of files.
    pub(crate) fn has_reader(&self, id: InstrumentId) -> bool {
        let mut instruments = self.instruments.iter();
        instruments.any(|row| row.thing.id == id && row.thing.reader.is_some())
    }

    /// Returns true if a file or a trigger refers to the instrument.
    fn instrument_is_used(&self, id: InstrumentId) -> bool {
        let of_trigger = |job: &Owned<Job>| {
            let trigger = job.thing.trigger.as_ref();
            trigger.and_then(|trigger| trigger.instrument) == Some(id)
        };
        let of_file = |file: &Owned<File>| file.thing.attribution.instrument() == Some(id);
        self.files.iter().any(of_file) || self.jobs.iter().any(of_trigger)
    }
}

#[async_trait]
impl InstrumentRepository for InMemoryInstrumentRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        instrument: &Instrument,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.require_organization(organization)?;
        if owned(&state.instruments, organization).any(|other| other.name == instrument.name) {
            return Err(PortError::Conflict(instrument.name_taken()));
        }
        state.instruments.push(Owned {
            organization,
            thing: instrument.clone(),
        });
        Ok(())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        request: PageRequest,
    ) -> Result<Page<Instrument>, PortError> {
        let state = self.memory.lock();
        let instruments = owned(&state.instruments, organization).cloned();
        Ok(page(instruments, request, |instrument| Cursor {
            at: instrument.created_at,
            id: instrument.id.as_uuid(),
        }))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
    ) -> Result<Instrument, PortError> {
        owned(&self.memory.lock().instruments, organization)
            .find(|instrument| instrument.id == id)
            .cloned()
            .ok_or(PortError::NotFound(Resource::Instrument))
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
        change: &InstrumentChange,
    ) -> Result<Instrument, PortError> {
        let mut state = self.memory.lock();
        let stored = owned(&state.instruments, organization)
            .find(|instrument| instrument.id == id)
            .ok_or(PortError::NotFound(Resource::Instrument))?;
        let changed = change.apply(stored.clone());
        if owned(&state.instruments, organization)
            .any(|other| other.id != id && other.name == changed.name)
        {
            return Err(PortError::Conflict(changed.name_taken()));
        }
        for row in &mut state.instruments {
            if row.thing.id == id {
                row.thing = changed.clone();
            }
        }
        Ok(changed)
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        id: InstrumentId,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        if !owned(&state.instruments, organization).any(|instrument| instrument.id == id) {
            return Err(PortError::NotFound(Resource::Instrument));
        }
        if state.instrument_is_used(id) {
            return Ok(false);
        }
        state.instruments.retain(|row| row.thing.id != id);
        state.devices.remove(&id);
        Ok(true)
    }
}
