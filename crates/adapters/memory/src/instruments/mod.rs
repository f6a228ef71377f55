//! Instruments in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{InstrumentId, OrganizationId},
    instruments::Instrument,
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{PortError, instruments::InstrumentRepository};

use crate::{
    Memory,
    memory::{Owned, owned},
    paging::page,
};

/// Instruments in memory.
#[derive(Clone, Debug)]
pub struct InMemoryInstrumentRepository {
    memory: Memory,
}

impl InMemoryInstrumentRepository {
    /// The repository over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
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
            .ok_or(PortError::NotFound("instrument"))
    }
}
