//! Periodic tasks: the table, and the loop that runs one task of it.

mod observer;
mod schedule;
mod table;

pub use observer::{NoObserver, TaskObserver};
pub(crate) use schedule::keep_running;
pub(crate) use table::{
    firing_triggers, housekeeping, recording_training_backend, sending_emails, trimming_caches,
};

use std::time::Duration;

use futures::future::BoxFuture;
use labdata_application::{
    Error, Services, maintenance::periodic_pass::Guard, subscription::Subscription,
};

/// One row of the table of periodic tasks.
pub(crate) struct PeriodicTask {
    /// Name in logs, metrics and the database.
    name: &'static str,
    /// Pause between the end of a pass and the next one.
    period: Duration,
    /// Pause after a pass that failed, of a task that every server runs.
    after_failure: Duration,
    /// Pause between the start of the server and its first pass.
    first_after: Duration,
    /// Servers that run the task: one at a time, or every one.
    guard: Guard,
    /// Behavior when the server stops during a pass.
    on_stop: OnStop,
    /// Notifications that start a pass before the period is over.
    wakeups: Option<fn(&Services) -> Subscription>,
    /// One pass.
    run: TaskFunction,
}

/// One pass of a periodic task.
type TaskFunction =
    Box<dyn Fn(Services) -> BoxFuture<'static, Result<PassOutcome, Error>> + Send + Sync>;

/// Outcome of a pass that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassOutcome {
    /// All work is done until the period is over.
    Idle,
    /// More work waits: the next pass starts immediately.
    More,
}

/// Behavior when the server stops during a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnStop {
    /// The pass is dropped; the next one does what is left.
    Abort,
    /// The stop waits for the end of the pass.
    Finish,
}

impl PeriodicTask {
    /// A task that every server runs, at once and then once per period. A stop aborts it.
    fn new<F, R>(name: &'static str, period: Duration, run: F) -> Self
    where
        F: Fn(Services) -> R + Send + Sync + 'static,
        R: Future<Output = Result<PassOutcome, Error>> + Send + 'static,
    {
        Self {
            name,
            period,
            after_failure: period,
            first_after: Duration::ZERO,
            guard: Guard::EveryServer,
            on_stop: OnStop::Abort,
            wakeups: None,
            run: Box::new(move |services| Box::pin(run(services))),
        }
    }

    /// Runs the task on one server at a time, once per period across all servers.
    fn on_one_server(self) -> Self {
        Self {
            guard: Guard::OneServer,
            ..self
        }
    }
}
