//! Subscribes to changes of runs.

use labdata_ports::work::RunNews;

use crate::{Ports, subscription::Subscription};

/// Subscribes to runs that are queued.
#[must_use]
pub fn watch_queued_runs(ports: &Ports) -> Subscription {
    Subscription::new(ports.runs.subscribe(RunNews::Queued))
}

/// Subscribes to runs that end, are cancelled or are taken from their worker.
#[must_use]
pub fn watch_ended_runs(ports: &Ports) -> Subscription {
    Subscription::new(ports.runs.subscribe(RunNews::Ended))
}
