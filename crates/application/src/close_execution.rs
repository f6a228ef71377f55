//! Closes an execution as its script says.

use labdata_domain::{
    actor::Actor,
    execution::{Execution, FinalStatus},
    ids::ExecutionId,
    scope::Scope,
};
use labdata_ports::executions::CloseExecutionError;

use crate::{Error, Ports};

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
    let now = ports.clock.now();
    match ports
        .executions
        .close(actor.organization, id, status, now)
        .await
    {
        Ok(execution) => Ok(execution),
        Err(CloseExecutionError::Refused(refusal)) => Err(Error::Invalid(refusal.to_string())),
        Err(CloseExecutionError::Port(error)) => Err(error.into()),
    }
}
