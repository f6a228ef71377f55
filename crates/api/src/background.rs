//! What a server does on its own, besides answering.

use std::time::Duration;

use labdata_application::{Ports, sweep_executions::sweep_executions};
use tokio::{task::JoinHandle, time::MissedTickBehavior};

/// How often executions past their deadline are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

/// Fails executions that were not closed in time, again and again, until the task is aborted.
/// Several servers on one database may all do it.
#[must_use = "abort the task when the server stops"]
pub fn spawn_sweeper(ports: Ports) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match sweep_executions(&ports).await {
                Ok(0) => {}
                Ok(failed) => tracing::info!(failed, "executions were not closed in time"),
                Err(error) => tracing::warn!(%error, "could not look for overdue executions"),
            }
        }
    })
}
