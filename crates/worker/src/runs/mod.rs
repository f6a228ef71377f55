//! Job runs: claims them from the queue and runs them.
//!
//! Any number of workers share one queue. A worker holds each of its runs under a lease, which it
//! renews while the script runs (`hold`). A worker that loses the lease stops its script.

mod hold;
mod log;
mod one_run;

use std::{fmt, sync::Arc, time::Duration};

use labdata_application::{
    Ports,
    runs::{begin_run::RunContext, claim_runs::claim_runs, watch_runs::watch_queued_runs},
};
use labdata_domain::runs::FreeSlots;
use labdata_ports::runs::runner::JobRunner;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::sleep,
};

/// Poll interval of the queue; covers missed notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Pause after the queue was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Settings of the run worker.
#[derive(Clone)]
pub struct RunWorkerSettings {
    /// Backend that runs scripts.
    pub runner: Arc<dyn JobRunner>,
    /// Maximum number of concurrent runs.
    pub concurrency: u32,
    /// Limits of runs, URL of the platform, and rules for the backend.
    pub context: RunContext,
    /// Time for which the backend may be unavailable. After it, a run that has not begun fails, and
    /// one that has begun is lost and tried once more.
    pub patience: Duration,
}

/// Default of [`RunWorkerSettings::patience`].
pub const PATIENCE: Duration = Duration::from_secs(30);

impl fmt::Debug for RunWorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWorkerSettings")
            .field("concurrency", &self.concurrency)
            .field("context", &self.context)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// Claims and runs runs. Claims no more once `stopping` is true, and returns when all its runs have
/// ended or are back in the queue.
pub(crate) async fn work(
    ports: Ports,
    settings: RunWorkerSettings,
    mut stopping: watch::Receiver<bool>,
) {
    let mut queued = watch_queued_runs(&ports);
    let mut running = JoinSet::new();
    let concurrency = usize::try_from(settings.concurrency).unwrap_or(usize::MAX);
    while !*stopping.borrow() {
        let held = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let slots = FreeSlots::of_worker(settings.concurrency, held);
        let mut pause = POLL_INTERVAL;
        if slots.free > 0 {
            match claim_runs(&ports, settings.context.limits, slots).await {
                Ok(claimed) => {
                    for run in claimed {
                        running.spawn(one_run::run(
                            ports.clone(),
                            settings.clone(),
                            run,
                            stopping.clone(),
                        ));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "could not claim runs");
                    pause = RETRY_AFTER;
                }
            }
        }
        let full = running.len() >= concurrency;
        tokio::select! {
            () = queued.next(), if !full => {}
            Some(ended) = running.join_next(), if !running.is_empty() => log_panic(ended),
            () = sleep(pause) => {}
            _ = stopping.changed() => {}
        }
    }
    while let Some(ended) = running.join_next().await {
        log_panic(ended);
    }
}

/// Logs a panic. The lease of the run then ends, and another worker tries it.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a run panicked");
    }
}
