//! Closes an execution as its script says.

use labdata_domain::{
    executions::{Execution, FinalStatus},
    ids::ExecutionId,
    notifications::has_failure_notice,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::executions::CloseExecutionError;

use crate::{Error, Services, notifications::deliver_notices::deliver_soon};

/// Closes an execution. The same status again changes nothing.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`; `Invalid` when it
/// ended with another status.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn close_execution(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
    status: FinalStatus,
) -> Result<Execution, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::NameExecution(id))?;
    let now = services.clock.now();
    match services
        .executions
        .close(actor.organization, id, status, now)
        .await
    {
        Ok(execution) => {
            // The notice was stored with the end; this only saves it from waiting for the next pass.
            if has_failure_notice(&execution) {
                deliver_soon(services).await;
            }
            Ok(execution)
        }
        Err(CloseExecutionError::Refused(refusal)) => Err(Error::refused(refusal)),
        Err(CloseExecutionError::Port(error)) => Err(error.into()),
    }
}
