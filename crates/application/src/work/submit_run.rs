//! Submits a run to its backend.

use labdata_ports::work::runner::{JobRunner, RunSpec, RunnerError};

/// Submits a run. Submitting it again has no effect.
///
/// # Errors
/// [`RunnerError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn submit_run(runner: &dyn JobRunner, spec: &RunSpec) -> Result<(), RunnerError> {
    runner.submit(spec).await
}
