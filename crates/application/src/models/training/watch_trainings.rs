//! Subscribes to changes of trainings.

use labdata_ports::work::RunNews;

use crate::{Ports, subscription::Subscription};

/// Subscribes to trainings that are queued.
#[must_use]
pub fn watch_queued_trainings(ports: &Ports) -> Subscription {
    Subscription::new(ports.trainings.subscribe(RunNews::Queued))
}

/// Subscribes to trainings that end, are cancelled or are taken from their worker.
#[must_use]
pub fn watch_ended_trainings(ports: &Ports) -> Subscription {
    Subscription::new(ports.trainings.subscribe(RunNews::Ended))
}
