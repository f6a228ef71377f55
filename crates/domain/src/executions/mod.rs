//! Job executions: their states and transitions. Everything a script writes is attributed to one.

mod refusal;
pub mod started_by;

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

pub use self::refusal::{CancelError, CloseError};
use crate::{
    ids::{ExecutionId, JobId},
    work::{NewRun, PlatformRun, RunEnd, WORKER_LOST, WORKER_LOST_AGAIN, has_another_attempt},
};

/// Largest `timeout_minutes` (30 days).
pub const MAX_TIMEOUT_MINUTES: u32 = 43_200;

/// Final status that a script reports for its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FinalStatus {
    /// The script succeeded.
    Completed,
    /// The script failed.
    Failed,
}

impl FinalStatus {
    /// Both statuses and their names in the API.
    pub const ALL: [(&'static str, Self); 2] =
        [("completed", Self::Completed), ("failed", Self::Failed)];
}

/// State of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionState {
    /// A run on the platform that waits for a worker.
    Queued,
    /// The script runs; writes and uploads are accepted.
    Running {
        /// When the platform fails it unless it has ended before.
        deadline: Option<OffsetDateTime>,
    },
    /// The script succeeded.
    Completed {
        /// When it ended.
        at: OffsetDateTime,
    },
    /// The script failed, or the platform gave up on it.
    Failed {
        /// When it ended.
        at: OffsetDateTime,
        /// Error message; `None` if the script itself reported the failure.
        error: Option<String>,
    },
    /// A user cancelled it.
    Cancelled {
        /// When it ended.
        at: OffsetDateTime,
    },
}

/// Place where an execution's script runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Outside the platform: opened by `POST /job-executions` and closed by the script.
    OffPlatform,
    /// Nowhere: created by a data write that names no execution, and completed with it.
    DataWrite,
    /// With an agent: opened by the first write of a run of the agent or of an assistant, and ended with the run or
    /// the assistant's session.
    Agent,
    /// On the platform, which alone records its state.
    Platform(PlatformRun),
}

/// End of a run of the agent, or of an assistant's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// It ended as it should.
    Completed,
    /// It failed, with this message.
    Failed(String),
}

impl Origin {
    /// The origin's name in the database.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::OffPlatform => "off_platform",
            Self::DataWrite => "data_write",
            Self::Agent => "agent",
            Self::Platform(_) => "platform",
        }
    }

    /// Details of a run on the platform.
    #[must_use]
    pub const fn run(&self) -> Option<&PlatformRun> {
        match self {
            Self::Platform(run) => Some(run),
            Self::OffPlatform | Self::DataWrite | Self::Agent => None,
        }
    }
}

/// One execution of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// The job.
    pub job_id: JobId,
    /// The job's name.
    pub job_name: String,
    /// Place where the script runs.
    pub origin: Origin,
    /// Its state.
    pub state: ExecutionState,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it started.
    pub started_at: Option<OffsetDateTime>,
}

impl Execution {
    /// A new execution of a script outside the platform, which starts now.
    #[must_use]
    pub fn start(
        id: ExecutionId,
        job_id: JobId,
        job_name: String,
        timeout_minutes: Option<u32>,
        now: OffsetDateTime,
    ) -> Self {
        Self {
            id,
            job_id,
            job_name,
            origin: Origin::OffPlatform,
            state: ExecutionState::start(now, timeout_minutes),
            created_at: now,
            started_at: Some(now),
        }
    }

    /// The same, for what an agent writes.
    #[must_use]
    pub fn of_agent(self) -> Self {
        Self {
            origin: Origin::Agent,
            ..self
        }
    }

    /// The execution that a data write creates for itself. It completes with the write.
    #[must_use]
    pub const fn of_data_write(
        id: ExecutionId,
        job_id: JobId,
        job_name: String,
        now: OffsetDateTime,
    ) -> Self {
        Self {
            id,
            job_id,
            job_name,
            origin: Origin::DataWrite,
            // A write is one transaction, so its execution is never seen running.
            state: ExecutionState::Completed { at: now },
            created_at: now,
            started_at: Some(now),
        }
    }

    /// The execution of a run on the platform, waiting for a worker.
    #[must_use]
    pub fn queue(run: &NewRun, job_name: String) -> Self {
        Self {
            id: run.id,
            job_id: run.job,
            job_name,
            origin: Origin::Platform(PlatformRun {
                trigger_file: run.trigger_file,
                parameters: run.parameters.clone(),
                source: run.source,
                ..PlatformRun::of_version(run.script_version)
            }),
            state: ExecutionState::Queued,
            created_at: run.queued_at,
            started_at: None,
        }
    }

    /// Starts a queued run; `None` unless it is queued.
    #[must_use]
    pub fn claim(self, now: OffsetDateTime, timeout: Duration) -> Option<Self> {
        (self.state == ExecutionState::Queued).then(|| Self {
            state: ExecutionState::Running {
                deadline: Some(now + timeout),
            },
            started_at: Some(now),
            ..self
        })
    }

    /// Returns a running run to the queue; `None` unless it is one.
    #[must_use]
    pub fn requeue(self) -> Option<Self> {
        match (&self.origin, &self.state) {
            (Origin::Platform(_), ExecutionState::Running { .. }) => Some(Self {
                state: ExecutionState::Queued,
                started_at: None,
                ..self
            }),
            _ => None,
        }
    }

    /// Closes it with the status that its script reports, by [`ExecutionState::close`].
    ///
    /// # Errors
    /// [`CloseError::RunsOnPlatform`] for a run on the platform, [`CloseError::CreatedByWrite`] for an
    /// execution of a data write, [`CloseError::OfAgent`] for that of an agent; the state's refusal.
    pub fn close(self, status: FinalStatus, now: OffsetDateTime) -> Result<Self, CloseError> {
        match self.origin {
            // Its worker reports the end; a close from outside would race with that.
            Origin::Platform(_) => return Err(CloseError::RunsOnPlatform),
            Origin::DataWrite => return Err(CloseError::CreatedByWrite),
            Origin::Agent => return Err(CloseError::OfAgent),
            Origin::OffPlatform => {}
        }
        Ok(Self {
            state: self.state.close(status, now)?,
            ..self
        })
    }

    /// Ends the execution of an agent with its run or session.
    ///
    /// # Errors
    /// Those of [`Self::close`] for other executions, and the state's refusal.
    pub fn end_agent(self, end: &AgentEnd, now: OffsetDateTime) -> Result<Self, CloseError> {
        match self.origin {
            Origin::Platform(_) => return Err(CloseError::RunsOnPlatform),
            Origin::DataWrite => return Err(CloseError::CreatedByWrite),
            // Earlier versions of the platform opened executions of agents as those of scripts.
            Origin::Agent | Origin::OffPlatform => {}
        }
        let is_open = self.state.is_open(now);
        let state = match end {
            AgentEnd::Failed(message) if is_open => ExecutionState::Failed {
                at: now,
                error: Some(message.clone()),
            },
            AgentEnd::Failed(_) => self.state.close(FinalStatus::Failed, now)?,
            AgentEnd::Completed => self.state.close(FinalStatus::Completed, now)?,
        };
        Ok(Self { state, ..self })
    }

    /// Fails it if its deadline has passed; `None` if not. The deadline of a run on the platform is
    /// its worker's concern, who knows whether the script ended in time.
    #[must_use]
    pub fn expire(self, now: OffsetDateTime) -> Option<Self> {
        // Workers enforce the deadline of runs themselves, because they have to stop the script as well.
        let is_overdue = self.origin.run().is_none()
            && matches!(self.state, ExecutionState::Running { .. })
            && !self.state.is_open(now);
        is_overdue.then(|| Self {
            state: self.state.expire(now),
            ..self
        })
    }

    /// Ends a run on the platform as its worker reports; `None` unless it is running. The deadline
    /// does not matter here: the worker knows whether the script ended in time.
    #[must_use]
    pub fn end(self, end: &RunEnd, now: OffsetDateTime) -> Option<Self> {
        // A report that comes after a cancellation changes nothing.
        let (Origin::Platform(run), ExecutionState::Running { .. }) = (self.origin, self.state)
        else {
            return None;
        };
        let state = match &end.error {
            None => ExecutionState::Completed { at: now },
            Some(error) => ExecutionState::Failed {
                at: now,
                error: Some(error.clone()),
            },
        };
        Some(Self {
            origin: Origin::Platform(PlatformRun {
                exit_code: end.exit_code,
                ..run
            }),
            state,
            ..self
        })
    }

    /// Fails a run whose worker was lost. Returns it, and the execution of that id which retries it, unless
    /// it retries one itself; `None` unless it is a running run on the platform.
    ///
    /// What the script wrote before remains attributed to the failed execution, where it can be reverted
    /// without what the retry writes.
    #[must_use]
    pub fn lose_worker(
        self,
        retry: ExecutionId,
        now: OffsetDateTime,
    ) -> Option<(Self, Option<Self>)> {
        let run = self.origin.run()?.clone();
        let lost_workers = 1 + u32::from(run.retry_of.is_some());
        if !has_another_attempt(lost_workers) {
            return Some((self.end(&RunEnd::failed(WORKER_LOST_AGAIN), now)?, None));
        }
        let mut failed = self.end(&RunEnd::failed(WORKER_LOST), now)?;
        let queued = Self {
            id: retry,
            origin: Origin::Platform(PlatformRun {
                retry_of: Some(failed.id),
                ..run
            }),
            state: ExecutionState::Queued,
            // Not the time of the first one: lists are by this time, and the retry is the newest run of its file.
            created_at: now,
            started_at: None,
            ..failed.clone()
        };
        if let Origin::Platform(run) = &mut failed.origin {
            run.retried_by = Some(retry);
        }
        Some((failed, Some(queued)))
    }

    /// The execution that it retries.
    #[must_use]
    pub fn retry_of(&self) -> Option<ExecutionId> {
        self.origin.run().and_then(|run| run.retry_of)
    }

    /// The execution that retries it.
    #[must_use]
    pub fn retried_by(&self) -> Option<ExecutionId> {
        self.origin.run().and_then(|run| run.retried_by)
    }

    /// Returns true if it has ended and no other execution retries it. Triggers and notices wait for that.
    #[must_use]
    pub fn has_finally_ended(&self) -> bool {
        self.state.has_ended() && self.retried_by().is_none()
    }

    /// Cancels it, wherever it runs.
    ///
    /// # Errors
    /// [`CancelError::Ended`] when it has ended, [`CancelError::Retried`] when another execution retries it.
    pub fn cancel(self, now: OffsetDateTime) -> Result<Self, CancelError> {
        if let Some(retry) = self.retried_by() {
            return Err(CancelError::Retried(retry));
        }
        // A run past its deadline is still its worker's, who is about to fail it.
        let state = match self.origin {
            Origin::Platform(_) => self.state,
            Origin::OffPlatform | Origin::DataWrite | Origin::Agent => self.state.expire(now),
        };
        match state {
            ExecutionState::Queued | ExecutionState::Running { .. } => Ok(Self {
                state: ExecutionState::Cancelled { at: now },
                ..self
            }),
            ended => Err(CancelError::Ended(ended.as_str())),
        }
    }
}

impl ExecutionState {
    /// The names of all states.
    pub const NAMES: [&'static str; 5] = ["queued", "running", "completed", "failed", "cancelled"];

    /// The state's name in the API and the database.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running { .. } => "running",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// When it ended.
    #[must_use]
    pub const fn completed_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Queued | Self::Running { .. } => None,
            Self::Completed { at } | Self::Failed { at, .. } | Self::Cancelled { at } => Some(*at),
        }
    }

    /// The running state of an execution that starts now.
    #[must_use]
    pub fn start(now: OffsetDateTime, timeout_minutes: Option<u32>) -> Self {
        Self::Running {
            deadline: timeout_minutes.map(|minutes| now + Duration::minutes(minutes.into())),
        }
    }

    /// Closes it with the status that its script reports. The same status again changes nothing.
    /// Past its deadline it counts as failed even before the sweeper has run.
    ///
    /// # Errors
    /// [`CloseError::EndedOtherwise`] when it ended with another status.
    pub fn close(self, status: FinalStatus, now: OffsetDateTime) -> Result<Self, CloseError> {
        // Past its deadline it has failed, even if the sweeper has not come to it yet.
        match (self.expire(now), status) {
            (Self::Running { .. }, FinalStatus::Completed) => Ok(Self::Completed { at: now }),
            (Self::Running { .. }, FinalStatus::Failed) => Ok(Self::Failed {
                at: now,
                error: None,
            }),
            // Closing it again with the same status succeeds, so that clients can retry.
            (state @ Self::Completed { .. }, FinalStatus::Completed)
            | (state @ Self::Failed { .. }, FinalStatus::Failed) => Ok(state),
            (state, _) => Err(CloseError::EndedOtherwise(state.as_str())),
        }
    }

    /// Fails it if its deadline has passed.
    #[must_use]
    pub fn expire(self, now: OffsetDateTime) -> Self {
        match self {
            Self::Running {
                deadline: Some(deadline),
            } if deadline <= now => Self::Failed {
                at: now,
                error: Some(TIMED_OUT.to_owned()),
            },
            state => state,
        }
    }

    /// When the platform fails it unless it has ended before.
    #[must_use]
    pub const fn deadline(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Running { deadline } => *deadline,
            _ => None,
        }
    }

    /// Error message of a failed execution, where the platform knows one.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// Returns true if it has ended. An end is final.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.completed_at().is_some()
    }

    /// Returns true if writes and uploads are accepted.
    #[must_use]
    pub fn is_open(&self, now: OffsetDateTime) -> bool {
        // `<` where `expire` has `<=`: at the deadline itself an execution has failed, and must not
        // count as open as well.
        matches!(self, Self::Running { deadline } if deadline.is_none_or(|deadline| now < deadline))
    }
}

/// The error message of an execution that the platform failed at its deadline.
pub const TIMED_OUT: &str = "timed out: it was not closed within its timeout_minutes";

#[cfg(test)]
mod tests;
