//! What a server does on its own, besides answering.

use std::time::Duration;

use labdata_application::{
    Ports, sweep_executions::sweep_executions, sweep_uploads::sweep_uploads,
};
use tokio::{task::JoinHandle, time::MissedTickBehavior};

/// How often executions past their deadline are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

/// After how many of those sweeps the remains of broken uploads are looked for.
const UPLOADS_EVERY: u32 = 300;

/// Fails executions that were not closed in time, and removes the remains of uploads that broke
/// off with their process, again and again, until the task is aborted.
/// Several servers on one database may all do it.
#[must_use = "abort the task when the server stops"]
pub fn spawn_sweeper(ports: Ports) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for sweep in 0_u32.. {
            ticks.tick().await;
            if sweep.is_multiple_of(UPLOADS_EVERY)
                && let Err(error) = sweep_uploads(&ports).await
            {
                tracing::warn!(%error, "could not look for the remains of uploads");
            }
            match sweep_executions(&ports).await {
                Ok(0) => {}
                Ok(failed) => tracing::info!(failed, "executions were not closed in time"),
                Err(error) => tracing::warn!(%error, "could not look for overdue executions"),
            }
        }
    })
}
