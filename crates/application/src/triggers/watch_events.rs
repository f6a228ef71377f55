//! Subscribes to events that may fire triggers.

use crate::{Ports, subscription::Subscription};

/// Subscribes to new events.
#[must_use]
pub fn watch_events(ports: &Ports) -> Subscription {
    Subscription::new(ports.triggers.subscribe())
}
