//! Closes an execution as its script says.

use labdata_domain::{
    executions::{Execution, ExecutionState, FinalStatus},
    ids::ExecutionId,
    keys::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use labdata_ports::executions::CloseExecutionError;

use crate::{Error, Ports, notifications::notify_failure::notify_failure};

/// Closes an execution. The same status again changes nothing.
///
/// # Errors
/// [`Error::Forbidden`] without the write scope; [`Error::NotFound`]; [`Error::Invalid`] when it
/// ended with another status.
pub async fn close_execution(
    ports: &Ports,
    actor: &Actor,
    id: ExecutionId,
    status: FinalStatus,
) -> Result<Execution, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::NameExecution(id))?;
    let now = ports.clock.now();
    match ports
        .executions
        .close(actor.organization, id, status, now)
        .await
    {
        Ok(execution) => {
            tell_if_failed(ports, actor, &execution).await;
            Ok(execution)
        }
        Err(CloseExecutionError::Refused(refusal)) => Err(Error::Invalid(refusal.to_string())),
        Err(CloseExecutionError::Port(error)) => Err(error.into()),
    }
}

/// Tells who started it, who need not be who closed it.
async fn tell_if_failed(ports: &Ports, actor: &Actor, execution: &Execution) {
    if !matches!(execution.state, ExecutionState::Failed { .. }) {
        return;
    }
    match ports
        .executions
        .started_by(actor.organization, execution.id)
        .await
    {
        Ok(user) => notify_failure(ports, actor.organization, user, execution).await,
        Err(error) => {
            tracing::warn!(execution = %execution.id, %error, "could not tell of a failed execution");
        }
    }
}
