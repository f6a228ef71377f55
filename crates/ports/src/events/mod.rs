//! The event log.

use async_trait::async_trait;
use labdata_domain::{
    events::{EventPosition, LoggedEvent},
    ids::{OrganizationId, UserId},
};
use time::OffsetDateTime;

use crate::{PortError, work::Wakeups};

/// Events after a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// The events, in order.
    pub events: Vec<LoggedEvent>,
    /// The position from which the next call continues.
    pub next: EventPosition,
}

/// The event log: events of an organization in one order, for any number of readers.
///
/// Repositories record an event in the transaction of its cause. An event that a transaction records
/// MUST NOT be readable before the transaction commits, nor be passed over by a reader that continues
/// at [`EventBatch::next`] or after any event: all events that are recorded later MUST have greater
/// positions than all that were read. It MAY become readable later than it is committed, while older
/// transactions are in progress, but MUST NOT be deleted before.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// The position from which a reader gets every event that is recorded after this call.
    async fn end(&self, organization: OrganizationId) -> Result<EventPosition, PortError>;

    /// Returns true if an event at that position is stored that the user could have read, so that a
    /// reader may continue after it. MUST be false for events that are deleted, and for those that
    /// another database recorded at positions that this one has yet to reach.
    async fn contains(
        &self,
        organization: OrganizationId,
        user: UserId,
        position: EventPosition,
    ) -> Result<bool, PortError>;

    /// Reads up to `limit` events after a position that the user may see: all of the organization
    /// except notifications of others.
    async fn read(
        &self,
        organization: OrganizationId,
        user: UserId,
        after: EventPosition,
        limit: u32,
    ) -> Result<EventBatch, PortError>;

    /// Deletes up to `limit` events that happened before that time, oldest first, and those that
    /// another database recorded at positions that this one has yet to reach; returns the number of
    /// old ones.
    async fn delete_before(&self, before: OffsetDateTime, limit: u32) -> Result<u64, PortError>;

    /// Subscribes to signals that an event of the organization was recorded, from all servers. Data
    /// writes need not be signaled.
    fn follow(&self, organization: OrganizationId) -> Box<dyn Wakeups>;
}
