//! Observes a run on its backend.

use labdata_ports::work::runner::{JobRunner, RunId, RunView, RunnerError};

/// Waits until the status or the length of the log differs from `seen`. May return `seen` after a
/// while.
///
/// # Errors
/// [`RunnerError::Unavailable`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn observe_run(
    runner: &dyn JobRunner,
    run: RunId,
    seen: &RunView,
) -> Result<RunView, RunnerError> {
    runner.wait(run, seen).await
}
