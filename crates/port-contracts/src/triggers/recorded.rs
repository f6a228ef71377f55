//! Events as they are recorded.

use std::sync::Mutex;

use labdata_domain::triggers::{TriggerEvent, event::Event};
use labdata_ports::triggers::TriggerStore;

/// Handles up to `limit` events, from which nothing follows, and returns them.
pub(crate) async fn recorded_events(triggers: &dyn TriggerStore, limit: u32) -> Vec<Event> {
    let events = Mutex::new(Vec::new());
    let record = |event: TriggerEvent<'_>| {
        events.lock().unwrap().push(*event.event);
        Vec::new()
    };
    let fired = triggers.act_on_events(limit, &record).await.unwrap();
    let events = events.into_inner().unwrap();
    assert_eq!(usize::try_from(fired.handled).unwrap(), events.len());
    events
}
