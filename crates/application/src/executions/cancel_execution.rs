//! Cancels an execution.

use labdata_domain::{
    executions::Execution,
    ids::ExecutionId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::executions::CancelExecutionError;

use crate::{Error, Services};

/// Cancels an execution that waits or runs, on the platform or elsewhere. It takes no writes from
/// then on; the worker that runs it is reported and stops the script.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`; `Invalid` when it
/// has ended.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn cancel_execution(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<Execution, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::CancelExecution)?;
    let now = services.clock.now();
    match services
        .executions
        .cancel(actor.organization, id, now)
        .await
    {
        Ok(execution) => {
            // The script must not write with a cached key after the response.
            services.key_cache.evict_execution(id);
            Ok(execution)
        }
        Err(CancelExecutionError::Refused(refusal)) => Err(Error::refused(refusal)),
        Err(CancelExecutionError::Port(error)) => Err(error.into()),
    }
}
