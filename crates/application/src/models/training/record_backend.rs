//! Records whether a worker's training backend can take work.

use labdata_domain::{models::TrainingBackend, work::BackendPolicy};
use labdata_ports::work::runner::JobRunner;
use uuid::Uuid;

use crate::{
    Error, Services,
    work::check_backend::{CheckBackendError, check_backend},
};

/// Returns an id for a worker that starts.
#[must_use]
pub fn new_worker(services: &Services) -> Uuid {
    services.ids.next_id()
}

/// Checks the backend and records its state for the worker of that id.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn record_backend(
    services: &Services,
    runner: &dyn JobRunner,
    policy: BackendPolicy,
    worker: Uuid,
) -> Result<(), Error> {
    let missing = match check_backend(services, policy).await {
        Err(CheckBackendError::Shared(refusal)) => Some(refusal.to_string()),
        Err(CheckBackendError::Failed(error)) => return Err(error),
        Ok(()) => runner.check().await.err().map(|error| error.to_string()),
    };
    let backend = TrainingBackend {
        worker,
        checked_at: services.clock.now(),
        missing,
    };
    Ok(services.trainings.record_backend(&backend).await?)
}
