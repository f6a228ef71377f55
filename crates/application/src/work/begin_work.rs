//! Makes of claimed work what a runner needs.

use labdata_ports::work::{ClaimedWork, Task, runner::RunSpec};

use super::{
    WorkContext,
    begin_run::begin_run,
    check_backend::{CheckBackendError, check_backend},
};
use crate::{Error, Services, models::training::begin_training::begin_training};

/// Outcome of the preparation of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It can be submitted.
    Ready(Box<RunSpec>),
    /// The worker has lost it.
    Lost,
    /// It does not run, for that reason: on this backend, or with the rights of its user.
    Refused(String),
}

/// Assembles the script of claimed work, and issues the secrets that it gets.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_work(
    services: &Services,
    claimed: &ClaimedWork,
    context: &WorkContext,
) -> Result<Begun, Error> {
    // For each claim, because an organization may have been added since the worker started.
    match check_backend(services, context.policy()).await {
        Ok(()) => {}
        Err(CheckBackendError::Shared(refusal)) => return Ok(Begun::Refused(refusal.to_string())),
        Err(CheckBackendError::Failed(error)) => return Err(error),
    }
    let claim = claimed.claim;
    match (&claimed.task, context) {
        (Task::Run(run), WorkContext::Run(context)) => {
            begin_run(services, claim, run, context).await
        }
        (Task::Training(training), WorkContext::Training(context)) => {
            let spec = begin_training(services, claim, training, context).await?;
            Ok(spec.map_or(Begun::Lost, |spec| Begun::Ready(Box::new(spec))))
        }
        _ => Err(Error::Internal(format!(
            "a worker of another kind has claimed {}",
            claim.work
        ))),
    }
}
