//! Retains caches of dependencies small.

use labdata_ports::work::runner::JobRunner;

use crate::Error;

/// Removes dependencies that no run uses from the backend's caches, where those are too large.
///
/// # Errors
/// [`Error::Unavailable`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn trim_caches(runner: &dyn JobRunner) -> Result<(), Error> {
    let trimmed = runner.trim_caches().await;
    trimmed.map_err(|error| Error::Unavailable(error.to_string()))
}
