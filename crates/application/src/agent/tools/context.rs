//! The caller of a tool, and the execution that a run writes under.

use std::fmt;

use futures::{FutureExt, future::BoxFuture, lock::Mutex};
use labdata_domain::{executions::AgentEnd, ids::ExecutionId, people::actor::Actor};

use crate::{
    Error, Services,
    agent::{Agent, write_session::write_session},
    executions::{
        cancel_execution::cancel_execution, end_agent_execution::end_agent_execution,
        start_execution::start_agent_execution,
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
    pub services: &'c Services,
    /// The caller of the run; a tool has no other rights.
    pub actor: &'c Actor,
    /// The agent.
    pub agent: &'c Agent,
    /// The writes of the run.
    pub writes: &'c RunWrites,
}

/// The execution of a run.
#[derive(Default)]
enum RunExecution {
    /// Not opened: the run has written nothing yet.
    #[default]
    None,
    /// It is being opened. The future outlives the call that began it: a call that is cancelled in between
    /// would leave an execution behind that is open and that no one knows.
    Opening(BoxFuture<'static, Result<ExecutionId, Error>>),
    /// It is open.
    Open(ExecutionId),
}

impl fmt::Debug for RunExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Opening(_) => f.write_str("Opening"),
            Self::Open(id) => f.debug_tuple("Open").field(id).finish(),
        }
    }
}

impl RunExecution {
    /// Returns the execution; waits while it is being opened. `None` if no write began to open one.
    async fn settle(&mut self) -> Result<Option<ExecutionId>, Error> {
        if let Self::Opening(opening) = self {
            // Stays in its place until it is done, because this call may be cancelled as well.
            let opened = opening.await;
            *self = opened.as_ref().map_or(Self::None, |id| Self::Open(*id));
            return opened.map(Some);
        }
        Ok(match self {
            Self::Open(id) => Some(*id),
            Self::None | Self::Opening(_) => None,
        })
    }
}

/// The writes of a run, all of which fall under one execution. It is opened by the first one.
#[derive(Debug, Default)]
pub struct RunWrites {
    execution: Mutex<RunExecution>,
    /// True if the execution outlives the run: that of the key's session.
    is_of_session: bool,
}

impl RunWrites {
    /// The writes of an assistant, which fall under the execution of its key's session.
    pub(crate) fn of_session() -> Self {
        Self {
            execution: Mutex::default(),
            is_of_session: true,
        }
    }

    /// Returns the execution of the run; opens it if this is the first write. The key of a platform run
    /// writes under the execution of that run.
    ///
    /// # Errors
    /// The errors of the store, and the refusal of a key that may begin no execution.
    pub async fn execution(
        &self,
        services: &Services,
        actor: &Actor,
    ) -> Result<ExecutionId, Error> {
        if let Some(own) = actor.execution {
            return Ok(own);
        }
        // Held until the execution is open, so that parallel calls share one.
        let mut execution = self.execution.lock().await;
        if let Some(id) = execution.settle().await? {
            return Ok(id);
        }
        if self.is_of_session {
            return write_session(services, actor).await;
        }
        *execution = RunExecution::Opening(open(services.clone(), actor.clone()).boxed());
        let opened = execution.settle().await?;
        opened.ok_or_else(|| Error::Internal("an execution was not opened".to_owned()))
    }

    /// The execution that the run has opened, or was opening when its call was cancelled.
    async fn opened(&self) -> Option<ExecutionId> {
        let opened = self.execution.lock().await.settle().await;
        opened.unwrap_or_else(|error| {
            tracing::warn!(%error, "the execution of an agent run was not opened");
            None
        })
    }

    /// Cancels the execution of the run, if it has opened one; returns it.
    pub(crate) async fn cancel(&self, services: &Services, actor: &Actor) -> Option<ExecutionId> {
        let id = self.opened().await?;
        if let Err(error) = cancel_execution(services, actor, id).await {
            tracing::warn!(execution = %id, %error, "the execution of an agent run was not cancelled");
        }
        Some(id)
    }

    /// Ends the execution of the run, if it has opened one; returns it.
    pub(crate) async fn end(
        &self,
        services: &Services,
        actor: &Actor,
        end: &AgentEnd,
    ) -> Option<ExecutionId> {
        let id = self.opened().await?;
        if let Err(error) = end_agent_execution(services, actor, id, end).await {
            tracing::warn!(execution = %id, %error, "the execution of an agent run was not ended");
        }
        Some(id)
    }
}

/// Opens the execution of a run.
async fn open(services: Services, actor: Actor) -> Result<ExecutionId, Error> {
    let opened = start_agent_execution(&services, &actor, JOB_NAME, TIMEOUT_MINUTES);
    Ok(opened.await?.id)
}
