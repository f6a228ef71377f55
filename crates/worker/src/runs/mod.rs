//! The worker: takes runs from the queue and runs them.
//!
//! Any number of workers share one queue. A worker holds each of its runs under a lease that it
//! renews while the script runs (`hold`); whoever holds no lease any more stops its script.

mod hold;
mod log;
mod one_run;

use std::{sync::Arc, time::Duration};

use labdata_application::Ports;
use labdata_domain::runs::RUN_LEASE;
use labdata_ports::runs::{
    ClaimedRun, RunNews,
    runner::{GRACE, JobRunner, RunLimits},
};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

/// How often a worker looks into the queue without being told to.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long a worker waits when the queue does not answer.
const QUEUE_DOWN: Duration = Duration::from_secs(1);

/// How a worker works.
#[derive(Clone)]
pub struct RunWorkerSettings {
    /// What runs scripts.
    pub runner: Arc<dyn JobRunner>,
    /// How many runs at a time.
    pub concurrency: u32,
    /// How much each may use.
    pub limits: RunLimits,
    /// Where scripts reach the platform, without a slash at the end.
    pub base_url: String,
    /// How long the runner may be out of reach. A run that has not begun then fails, saying so; one
    /// that has begun is lost, and tried once more.
    pub patience: Duration,
}

/// The [`RunWorkerSettings::patience`] of the program.
pub const PATIENCE: Duration = Duration::from_secs(30);

impl std::fmt::Debug for RunWorkerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunWorkerSettings")
            .field("concurrency", &self.concurrency)
            .field("limits", &self.limits)
            .field("base_url", &self.base_url)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl RunWorkerSettings {
    /// How long an execution may be running in all, the time included in which its worker ends it.
    fn timeout(&self) -> time::Duration {
        let all = self.limits.preparation + self.limits.wall_clock + 2 * GRACE;
        time::Duration::try_from(all).unwrap_or(time::Duration::MAX)
    }
}

/// Starts a worker, which takes no more runs once it is told to stop, and ends when those that it
/// has are over or back in the queue.
pub(crate) fn spawn(
    ports: Ports,
    settings: RunWorkerSettings,
    stopping: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(work(ports, settings, stopping))
}

async fn work(ports: Ports, settings: RunWorkerSettings, mut stopping: watch::Receiver<bool>) {
    let mut queued = ports.runs.subscribe(RunNews::Queued);
    let mut running = JoinSet::new();
    let slots = usize::try_from(settings.concurrency).unwrap_or(usize::MAX);
    while !*stopping.borrow() {
        let free = u32::try_from(slots.saturating_sub(running.len())).unwrap_or(u32::MAX);
        let mut pause = LOOK_EVERY;
        if free > 0 {
            match claim(&ports, &settings, free).await {
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
                    tracing::warn!(%error, "could not look for runs");
                    pause = QUEUE_DOWN;
                }
            }
        }
        let full = running.len() >= slots;
        tokio::select! {
            () = queued.next(), if !full => {}
            Some(ended) = running.join_next(), if !running.is_empty() => tell_panic(ended),
            () = sleep(pause) => {}
            _ = stopping.changed() => {}
        }
    }
    while let Some(ended) = running.join_next().await {
        tell_panic(ended);
    }
}

async fn claim(
    ports: &Ports,
    settings: &RunWorkerSettings,
    limit: u32,
) -> Result<Vec<ClaimedRun>, labdata_ports::PortError> {
    let now = ports.clock.now();
    let timeout = settings.timeout();
    ports.runs.claim(now, RUN_LEASE, timeout, limit).await
}

/// The run's lease ends, and another worker tries.
fn tell_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the task of a run broke");
    }
}
