//! The execution under which an assistant writes.

use labdata_domain::{
    agent::{ASSISTANT_JOB_NAME, WRITE_SESSION_MINUTES, WRITE_SESSION_PAUSE},
    executions::AgentEnd,
    ids::ExecutionId,
    people::actor::Actor,
};

use labdata_ports::{agent::IdleSession, executions::CloseExecutionError};

use crate::{
    Error, Services,
    executions::{
        end_agent_execution::end_agent_execution, start_execution::start_agent_execution,
    },
    idempotency::unit_of_work::UnitOfWork,
};

/// Maximum number of sessions that are ended in one step.
const BATCH: u32 = 100;

/// Returns the execution under which the caller's key writes; opens it if there is none that is open.
///
/// # Errors
/// Those of [`start_agent_execution`].
pub(super) async fn write_session(
    services: &Services,
    actor: &Actor,
) -> Result<ExecutionId, Error> {
    let (sessions, organization, key) =
        (&services.write_sessions, actor.organization, actor.api_key);
    let now = services.clock.now();
    if let Some(id) = sessions.resume(organization, key).await? {
        let execution = services.executions.get(organization, id).await?;
        if execution.state.is_open(now) {
            return Ok(id);
        }
        // The execution was cancelled or timed out, so it would refuse further writes.
        sessions.end(organization, key, id).await?;
    }
    let opened = start_agent_execution(services, actor, ASSISTANT_JOB_NAME, WRITE_SESSION_MINUTES);
    let opened = opened.await?.id;
    let id = sessions.begin(organization, key, opened).await?;
    if id != opened {
        // Another call was faster.
        end_agent_execution(services, actor, opened, &AgentEnd::Completed).await?;
    }
    Ok(id)
}

/// Completes the executions of sessions that have paused too long; returns their number. No caller
/// requests it: it is the platform's own housekeeping, for all organizations, and several servers may do it at
/// once.
///
/// # Errors
/// Errors of the ports; the sessions that are left end with the next call.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn end_write_sessions(services: &Services) -> Result<u64, Error> {
    let mut count = 0;
    loop {
        let idle = services.write_sessions.idle(WRITE_SESSION_PAUSE, BATCH);
        let idle = idle.await?;
        let mut ended = 0;
        for session in &idle {
            ended += u64::from(end_write_session(services, session).await?);
        }
        count += ended;
        let is_last = idle.len() < usize::try_from(BATCH).unwrap_or(usize::MAX);
        // None of a full batch ended where another server is at the same sessions.
        if is_last || ended == 0 {
            return Ok(count);
        }
    }
}

/// Ends an idle session with its execution. Returns false if it was used or ended since.
async fn end_write_session(services: &Services, session: &IdleSession) -> Result<bool, Error> {
    let (organization, key) = (session.organization, session.key);
    // One transaction: a server that stops between the two would leave the execution open for a day.
    let unit = UnitOfWork::begin(services, organization).await?;
    let within = unit.services();
    let outcome = async {
        let ended = within
            .write_sessions
            .end_idle(organization, key, WRITE_SESSION_PAUSE);
        let Some(id) = ended.await? else {
            return Ok(false);
        };
        let now = services.clock.now();
        let completed = within
            .executions
            .end_agent(organization, id, &AgentEnd::Completed, now);
        match completed.await {
            Ok(_) => {}
            // Someone else has cancelled it, or its time is over.
            Err(CloseExecutionError::Refused(refused)) => {
                tracing::debug!(execution = %id, %refused, "the execution of an assistant was not closed");
            }
            Err(CloseExecutionError::Port(error)) => return Err(error.into()),
        }
        Ok(true)
    };
    let outcome = outcome.await;
    unit.conclude(outcome).await
}
