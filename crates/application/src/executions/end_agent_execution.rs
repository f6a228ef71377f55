//! Ends the execution of an agent.

use labdata_domain::{
    executions::{AgentEnd, Execution},
    ids::ExecutionId,
    notifications::has_failure_notice,
    people::actor::Actor,
};
use labdata_ports::executions::CloseExecutionError;

use crate::{Error, Services, notifications::deliver_notices::deliver_soon};

/// Ends the execution that an agent has opened for the caller. No scope is needed: the platform ends what it opened,
/// also for a caller that may no longer write.
///
/// # Errors
/// `NotFound`; `Invalid` when it ended otherwise.
#[tracing::instrument(level = "debug", skip_all)]
pub(crate) async fn end_agent_execution(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
    end: &AgentEnd,
) -> Result<Execution, Error> {
    let now = services.clock.now();
    let ended = services
        .executions
        .end_agent(actor.organization, id, end, now);
    match ended.await {
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
