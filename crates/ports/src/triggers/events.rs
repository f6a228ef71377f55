//! The outbox of events.

use async_trait::async_trait;
use labdata_domain::triggers::event::Event;

use crate::PortError;

/// What happened and was not acted on yet.
///
/// Repositories store an event in the transaction of what it tells: a
/// [`FileUploaded`](labdata_domain::triggers::event::EventKind::FileUploaded) exactly once for every file
/// that becomes confirmed. The event of a file that is deleted goes with it.
///
/// A consumer whose effect is in the same store deletes the event in the transaction of that
/// effect rather than calling [`EventOutbox::take`], so that neither is lost with a crash.
#[async_trait]
pub trait EventOutbox: Send + Sync {
    /// Takes up to `limit` events of all organizations, the oldest first, out of the outbox. Of
    /// racing calls, from whatever server, one MUST get each event.
    async fn take(&self, limit: u32) -> Result<Vec<Event>, PortError>;
}
