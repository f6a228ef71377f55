//! Stops a run on its backend.

use labdata_ports::work::runner::{JobRunner, RunId, RunnerError};

/// Asks the backend to stop a run: SIGTERM, then SIGKILL after
/// [`GRACE`](labdata_ports::work::runner::GRACE). Returns before the run has ended.
///
/// # Errors
/// [`RunnerError::Unavailable`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn stop_run(runner: &dyn JobRunner, run: RunId) -> Result<(), RunnerError> {
    runner.cancel(run).await
}
