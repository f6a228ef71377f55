//! The outbox of events in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{EventId, OrganizationId},
    triggers::event::{Event, EventKind},
};
use labdata_ports::{PortError, triggers::events::EventOutbox};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Memory, memory::State};

/// The outbox of events in memory.
#[derive(Clone, Debug)]
pub struct InMemoryEventOutbox {
    memory: Memory,
}

impl InMemoryEventOutbox {
    /// The outbox over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    /// Stores an event beside what it tells.
    pub(crate) fn record_event(
        &mut self,
        organization: OrganizationId,
        kind: EventKind,
        created_at: OffsetDateTime,
    ) {
        self.events_so_far += 1;
        self.events.push(Event {
            id: EventId::new(Uuid::from_u128(self.events_so_far)),
            organization,
            kind,
            created_at,
        });
        self.event_subscribers
            .retain(|subscriber| subscriber.unbounded_send(()).is_ok());
    }

    /// The oldest events, which are no longer there.
    pub(crate) fn take_events(&mut self, limit: u32) -> Vec<Event> {
        self.events
            .sort_by_key(|event| (event.created_at, event.id));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let taken = limit.min(self.events.len());
        self.events.drain(..taken).collect()
    }
}

#[async_trait]
impl EventOutbox for InMemoryEventOutbox {
    async fn take(&self, limit: u32) -> Result<Vec<Event>, PortError> {
        Ok(self.memory.lock().take_events(limit))
    }
}
