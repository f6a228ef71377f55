//! The outbox of events in memory.

use labdata_domain::{
    executions::Execution,
    ids::{EventId, OrganizationId},
    triggers::event::{Event, EventKind},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::memory::{State, owned};

impl State {
    /// Stores an event and wakes the subscribers.
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

    /// Stores the event of an execution that has just ended, if a trigger waits for it.
    pub(crate) fn record_end(&mut self, organization: OrganizationId, ended: &Execution) {
        let awaited = owned(&self.jobs, organization)
            .filter_map(|job| job.trigger.as_ref())
            .any(|trigger| trigger.awaits_end_of(ended.job_id));
        let is_final = ended.has_finally_ended();
        if let Some(at) = ended.state.completed_at().filter(|_| awaited && is_final) {
            self.record_event(organization, EventKind::JobCompleted(ended.id), at);
        }
    }

    /// Removes and returns the oldest events.
    pub(crate) fn take_events(&mut self, limit: u32) -> Vec<Event> {
        self.events
            .sort_by_key(|event| (event.created_at, event.id));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let taken = limit.min(self.events.len());
        self.events.drain(..taken).collect()
    }
}
