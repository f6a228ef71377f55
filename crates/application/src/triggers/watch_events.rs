//! Subscribes to events that may fire triggers.

use crate::{Services, subscription::Subscription};

/// Subscribes to new events.
#[must_use]
pub fn watch_events(services: &Services) -> Subscription {
    Subscription::new(services.triggers.subscribe())
}
