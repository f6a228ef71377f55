//! The caller of a tool, and the execution that a run writes under.

use futures::lock::Mutex;
use labdata_domain::{executions::FinalStatus, ids::ExecutionId, people::actor::Actor};

use crate::{
    Error, Services,
    agent::{Agent, write_session::write_session},
    executions::{
        cancel_execution::cancel_execution,
        close_execution::close_execution,
        start_execution::{StartExecution, start_execution},
    },
};

/// Name of the job that writes of runs are recorded under.
const JOB_NAME: &str = "Agent";

/// Minutes after which the execution of a run ends whose server was lost.
const TIMEOUT_MINUTES: u32 = 24 * 60;

/// Caller and surroundings of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolContext<'c> {
    /// The ports.
    pub ports: &'c Services,
    /// The caller of the run; a tool has no other rights.
    pub actor: &'c Actor,
    /// The agent.
    pub agent: &'c Agent,
    /// The writes of the run.
    pub writes: &'c RunWrites,
}

/// The writes of a run, all of which fall under one execution. It is opened by the first one.
#[derive(Debug, Default)]
pub struct RunWrites {
    opened: Mutex<Option<ExecutionId>>,
    /// True if the execution outlives the run: that of the key's session.
    is_of_session: bool,
}

impl RunWrites {
    /// The writes of an assistant, which fall under the execution of its key's session.
    pub(crate) fn of_session() -> Self {
        Self {
            opened: Mutex::default(),
            is_of_session: true,
        }
    }

    /// Returns the execution of the run; opens it if this is the first write. The key of a platform run
    /// writes under the execution of that run.
    ///
    /// # Errors
    /// Those of [`start_execution`].
    pub async fn execution(&self, ports: &Services, actor: &Actor) -> Result<ExecutionId, Error> {
        if let Some(own) = actor.execution {
            return Ok(own);
        }
        // Held until the execution is open, so that parallel calls share one.
        let mut opened = self.opened.lock().await;
        if let Some(id) = *opened {
            return Ok(id);
        }
        if self.is_of_session {
            return write_session(ports, actor).await;
        }
        let start = StartExecution {
            job_id: None,
            job_name: Some(JOB_NAME.to_owned()),
            timeout_minutes: Some(TIMEOUT_MINUTES),
        };
        let id = start_execution(ports, actor, start).await?.id;
        *opened = Some(id);
        Ok(id)
    }

    /// Cancels the execution of the run, if it has opened one.
    pub(crate) async fn cancel(&self, ports: &Services, actor: &Actor) {
        let Some(id) = *self.opened.lock().await else {
            return;
        };
        if let Err(error) = cancel_execution(ports, actor, id).await {
            tracing::warn!(execution = %id, %error, "the execution of an agent run was not cancelled");
        }
    }

    /// Closes the execution of the run, if it has opened one.
    pub(crate) async fn close(&self, ports: &Services, actor: &Actor, status: FinalStatus) {
        let Some(id) = *self.opened.lock().await else {
            return;
        };
        if let Err(error) = close_execution(ports, actor, id, status).await {
            tracing::warn!(execution = %id, %error, "the execution of an agent run was not closed");
        }
    }
}
