//! Claims work from the queue and runs it: job runs and trainings alike.
//!
//! Any number of workers share the queue. A worker holds each of its runs under a lease, which it
//! renews while the script runs (`hold`). A worker that loses the lease stops its script.

mod hold;
mod log;
mod one;
mod settings;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use labdata_application::{Services, work::claim_work::claim_work};
use labdata_domain::work::FreeSlots;
use labdata_ports::work::WorkNews;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::sleep,
};

pub use self::settings::{BACKEND_TIMEOUT, BackendSettings, WorkSettings};

/// Poll interval of the queue; covers missed notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Pause after the queue was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Claims work of one kind and runs it. Claims no more once `stopping` is true, and returns when all its runs have
/// ended or are back in the queue.
pub(crate) async fn work(
    services: Services,
    settings: WorkSettings,
    mut stopping: watch::Receiver<bool>,
) {
    let settings = Arc::new(settings);
    let mut queued = services
        .work
        .subscribe(settings.context.kind(), WorkNews::Queued);
    let mut running = JoinSet::new();
    let concurrency = settings.backend.concurrency;
    while !*stopping.borrow() {
        let held = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let slots = FreeSlots::of_worker(concurrency, held);
        let mut pause = POLL_INTERVAL;
        if slots.free > 0 {
            // Before the claim: its response may be late.
            let asked = services.clock.elapsed();
            match claim_work(&services, &settings.context, slots).await {
                Ok(claimed) => {
                    for work in claimed {
                        running.spawn(one::run(
                            services.clone(),
                            Arc::clone(&settings),
                            work,
                            asked,
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
        let held = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let full = FreeSlots::of_worker(concurrency, held).free == 0;
        tokio::select! {
            // Without a free slot a notification is left for later: the subscription remembers it.
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
