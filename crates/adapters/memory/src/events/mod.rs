//! The event log in memory.

pub(crate) mod row;

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    events::{EventPosition, LoggedEvent, LoggedEventKind},
    ids::{NotificationId, OrganizationId, TrashId, UserId},
};
use labdata_ports::{
    PortError,
    events::{EventBatch, EventLog},
    work::Wakeups,
};
use time::OffsetDateTime;

use self::row::EventRow;
use crate::{Memory, memory::State, work::subscribers::Subscription};

/// The event log in memory.
#[derive(Clone, Debug)]
pub struct InMemoryEventLog {
    memory: Memory,
}

impl InMemoryEventLog {
    /// The log of that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    /// Records an event that every user of the organization may see.
    pub(crate) fn log_event(
        &mut self,
        organization: OrganizationId,
        at: OffsetDateTime,
        kind: LoggedEventKind,
    ) {
        self.push_event(organization, None, at, kind);
    }

    /// Records that a notification was delivered.
    pub(crate) fn log_notification(
        &mut self,
        organization: OrganizationId,
        user: UserId,
        at: OffsetDateTime,
        id: NotificationId,
    ) {
        let kind = LoggedEventKind::NotificationCreated(id);
        self.push_event(organization, Some(user), at, kind);
    }

    /// Gives the events of a table to the one that it becomes: by another name, in the trash, or out of it.
    pub(crate) fn move_events(
        &mut self,
        organization: OrganizationId,
        from: (&str, Option<TrashId>),
        to: (&str, Option<TrashId>),
    ) {
        for row in &mut self.event_log {
            if row.organization != organization || row.trash != from.1 {
                continue;
            }
            if let LoggedEventKind::DataWritten { table, .. } | LoggedEventKind::TableChanged(table) =
                &mut row.event.kind
                && table == from.0
            {
                to.0.clone_into(table);
                row.trash = to.1;
            }
        }
    }

    fn push_event(
        &mut self,
        organization: OrganizationId,
        user: Option<UserId>,
        at: OffsetDateTime,
        kind: LoggedEventKind,
    ) {
        self.tell_webhooks(organization, user, at, &kind);
        self.logged_so_far += 1;
        let position = EventPosition {
            transaction: self.logged_so_far,
            number: 1,
        };
        self.event_log.push(EventRow {
            organization,
            user,
            event: LoggedEvent {
                position,
                at,
                kind,
                is_of_dropped_table: false,
            },
            trash: None,
        });
        self.signal_followers(organization.as_uuid());
    }
}

#[async_trait]
impl EventLog for InMemoryEventLog {
    async fn end(&self, _organization: OrganizationId) -> Result<EventPosition, PortError> {
        Ok(EventPosition {
            transaction: self.memory.lock().logged_so_far + 1,
            number: 0,
        })
    }

    async fn contains(
        &self,
        organization: OrganizationId,
        user: UserId,
        position: EventPosition,
    ) -> Result<bool, PortError> {
        let state = self.memory.lock();
        let mut readable = state
            .event_log
            .iter()
            .filter(|row| row.is_readable_by(organization, user));
        Ok(readable.any(|row| row.event.position == position))
    }

    async fn read(
        &self,
        organization: OrganizationId,
        user: UserId,
        after: EventPosition,
        limit: u32,
    ) -> Result<EventBatch, PortError> {
        let state = self.memory.lock();
        let rows = state
            .event_log
            .iter()
            .filter(|row| row.is_readable_by(organization, user) && row.event.position > after);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let events: Vec<LoggedEvent> = rows.take(limit).map(EventRow::read).collect();
        Ok(EventBatch {
            next: events.last().map_or(after, |event| event.position),
            events,
        })
    }

    async fn delete_before(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut left = limit;
        let mut deleted = 0;
        self.memory.lock().event_log.retain(|row| {
            let is_old = row.event.at < before && left > 0;
            if is_old {
                left -= 1;
                deleted += 1;
            }
            !is_old
        });
        Ok(deleted)
    }

    fn follow(&self, organization: OrganizationId) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        let follower = (organization.as_uuid(), sender);
        self.memory.lock().followers.push(follower);
        Box::new(Subscription(receiver))
    }
}
