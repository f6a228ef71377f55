//! Results of periodic tasks, for metrics.

use std::time::Duration;

use time::OffsetDateTime;

/// Receives the result of every pass of a periodic task.
pub trait TaskObserver: Send + Sync {
    /// A pass of this server succeeded.
    fn succeeded(&self, task: &'static str, finished_at: OffsetDateTime, took: Duration);

    /// A pass of this server failed.
    fn failed(&self, task: &'static str, took: Duration);

    /// The task is not due; another server, or this one before a restart, last completed it at
    /// this time.
    fn succeeded_earlier(&self, task: &'static str, finished_at: OffsetDateTime);
}

/// Ignores all results, for workers without metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl TaskObserver for NoObserver {
    fn succeeded(&self, _: &'static str, _: OffsetDateTime, _: Duration) {}

    fn failed(&self, _: &'static str, _: Duration) {}

    fn succeeded_earlier(&self, _: &'static str, _: OffsetDateTime) {}
}
