//! Removes what runs leave on their backend.

use labdata_ports::runs::{
    RunClaim,
    runner::{JobRunner, RunId, RunnerError},
};

use super::begin_run::run_id;

/// Removes processes, scratch directory and log of a run.
///
/// # Errors
/// [`RunnerError::Unavailable`].
pub async fn reap_run(runner: &dyn JobRunner, run: RunId) -> Result<(), RunnerError> {
    runner.reap(run).await
}

/// Removes what earlier attempts at the same execution left, where the backend outlives workers.
/// Failures are logged.
pub async fn reap_earlier_attempts(runner: &dyn JobRunner, claim: RunClaim) {
    for attempt in 1..claim.attempt {
        let earlier = RunId {
            attempt,
            ..run_id(claim)
        };
        if let Err(error) = runner.reap(earlier).await {
            tracing::warn!(work = %earlier.work, attempt, %error, "could not remove an earlier attempt");
        }
    }
}
