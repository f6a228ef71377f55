//! The execution under which an assistant writes.

use labdata_domain::{
    agent::{ASSISTANT_JOB_NAME, WRITE_SESSION_MINUTES, WRITE_SESSION_PAUSE},
    executions::FinalStatus,
    ids::ExecutionId,
    people::actor::Actor,
};

use crate::{
    Error, Services,
    executions::{
        close_execution::close_execution,
        start_execution::{StartExecution, start_execution},
    },
};

/// Maximum number of sessions that are ended in one step.
const BATCH: u32 = 100;

/// Returns the execution under which the caller's key writes; opens it if there is none that is open.
///
/// # Errors
/// Those of [`start_execution`].
pub(super) async fn write_session(
    services: &Services,
    actor: &Actor,
) -> Result<ExecutionId, Error> {
    let (sessions, organization, key) =
        (&services.write_sessions, actor.organization, actor.api_key);
    let now = services.clock.now();
    if let Some(id) = sessions.resume(organization, key, now).await? {
        let execution = services.executions.get(organization, id).await?;
        if execution.state.is_open(now) {
            return Ok(id);
        }
        // The execution was closed or cancelled, so it would refuse further writes.
        sessions.end(organization, key, id).await?;
    }
    let start = StartExecution {
        job_id: None,
        job_name: Some(ASSISTANT_JOB_NAME.to_owned()),
        timeout_minutes: Some(WRITE_SESSION_MINUTES),
    };
    let opened = start_execution(services, actor, start).await?.id;
    let id = sessions.begin(organization, key, opened, now).await?;
    if id != opened {
        // Another call was faster.
        close_execution(services, actor, opened, FinalStatus::Completed).await?;
    }
    Ok(id)
}

/// Completes the executions of sessions that have paused too long; returns their number. No caller
/// requests it: it is the platform's own housekeeping, for all organizations.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn end_write_sessions(services: &Services) -> Result<u64, Error> {
    let now = services.clock.now();
    let mut count = 0;
    loop {
        let sessions = services
            .write_sessions
            .end_idle(now - WRITE_SESSION_PAUSE, BATCH);
        let ended = sessions.await?;
        for session in &ended {
            let (organization, id) = (session.organization, session.execution);
            let closed = services
                .executions
                .close(organization, id, FinalStatus::Completed, now);
            // It may have been closed or cancelled by someone else.
            if let Err(error) = closed.await {
                tracing::debug!(execution = %id, %error, "the execution of an assistant was not closed");
            }
            count += 1;
        }
        if ended.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(count);
        }
    }
}
