//! Removes what runs leave on their backend.

use labdata_ports::work::runner::{JobRunner, RunId, RunnerError};

/// Removes processes, scratch directory and log of a run.
///
/// # Errors
/// [`RunnerError::Unavailable`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn reap_run(runner: &dyn JobRunner, run: RunId) -> Result<(), RunnerError> {
    runner.reap(run).await
}

/// Removes what earlier attempts at the same work left, where the backend outlives workers.
/// Failures are logged.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn reap_earlier_attempts(runner: &dyn JobRunner, run: RunId) {
    // Their workers are lost, so no one else cleans up after them.
    for attempt in 1..run.attempt {
        let earlier = RunId { attempt, ..run };
        if let Err(error) = runner.reap(earlier).await {
            tracing::warn!(run = %earlier, %error, "could not remove an earlier attempt");
        }
    }
}
