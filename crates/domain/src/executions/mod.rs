//! Job executions: one run of a script, and all that it produced.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use crate::{
    ids::{ExecutionId, JobId},
    runs::{PlatformRun, RunEnd},
};

/// The longest `timeout_minutes` (30 days).
pub const MAX_TIMEOUT_MINUTES: u32 = 43_200;

/// A final status that a script reports of its own execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FinalStatus {
    /// It did what it should.
    Completed,
    /// It did not.
    Failed,
}

/// Where an execution stands, with what belongs to that state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionState {
    /// A run on the platform that waits for a worker.
    Queued,
    /// Writes and uploads are accepted.
    Running {
        /// When the platform fails it unless it has ended before.
        deadline: Option<OffsetDateTime>,
    },
    /// It did what it should.
    Completed {
        /// When.
        at: OffsetDateTime,
    },
    /// Closed as failed, or by the platform.
    Failed {
        /// When.
        at: OffsetDateTime,
        /// Why, where the platform failed it.
        error: Option<String>,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// When.
        at: OffsetDateTime,
    },
}

/// Whose script runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Opened by `POST /job-executions` for a script that runs elsewhere; closed by it.
    OffPlatform,
    /// Created by a data write that named none, and completed with it.
    DataWrite,
    /// Run by the platform, which alone records how it stands.
    Platform(PlatformRun),
}

impl Origin {
    /// The origin's name in the database.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::OffPlatform => "off_platform",
            Self::DataWrite => "data_write",
            Self::Platform(_) => "platform",
        }
    }

    /// What is known of a run on the platform.
    #[must_use]
    pub const fn run(&self) -> Option<&PlatformRun> {
        match self {
            Self::Platform(run) => Some(run),
            Self::OffPlatform | Self::DataWrite => None,
        }
    }
}

/// One run of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// The job that runs.
    pub job_id: JobId,
    /// That job's name.
    pub job_name: String,
    /// Who runs it.
    pub origin: Origin,
    /// Where it stands.
    pub state: ExecutionState,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it started.
    pub started_at: Option<OffsetDateTime>,
}

/// Why an execution cannot be closed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// It ended before, another way.
    #[error("this execution is already {0}, which is final")]
    EndedOtherwise(&'static str),
    /// The platform runs it.
    #[error(
        "this execution runs on the platform, which records itself how it ends; to stop it, \
         cancel it"
    )]
    RunsOnPlatform,
}

/// Why an execution cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// It ended before.
    #[error("this execution is already {0}, which is final")]
    Ended(&'static str),
}

impl Execution {
    /// Closes it as its script says, by [`ExecutionState::close`].
    ///
    /// # Errors
    /// [`CloseError::RunsOnPlatform`] for a run on the platform; what the state refuses.
    pub fn close(self, status: FinalStatus, now: OffsetDateTime) -> Result<Self, CloseError> {
        if self.origin.run().is_some() {
            return Err(CloseError::RunsOnPlatform);
        }
        Ok(Self {
            state: self.state.close(status, now)?,
            ..self
        })
    }

    /// Ends a run on the platform as its worker found it; `None` unless it is running. Its
    /// deadline is the worker's concern, who knows whether the script kept it.
    #[must_use]
    pub fn end(self, end: &RunEnd, now: OffsetDateTime) -> Option<Self> {
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

    /// Cancels it, whoever runs it.
    ///
    /// # Errors
    /// [`CancelError::Ended`] when it has ended.
    pub fn cancel(self, now: OffsetDateTime) -> Result<Self, CancelError> {
        // A run past its deadline is still its worker's, who is about to fail it.
        let state = match self.origin {
            Origin::Platform(_) => self.state,
            Origin::OffPlatform | Origin::DataWrite => self.state.expire(now),
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

    /// Closes it as its script says. The same status again changes nothing. Past its deadline it
    /// is failed even before the sweeper has come by, so that the answer does not depend on it.
    ///
    /// # Errors
    /// [`CloseError::EndedOtherwise`] when it ended with another status.
    pub fn close(self, status: FinalStatus, now: OffsetDateTime) -> Result<Self, CloseError> {
        match (self.expire(now), status) {
            (Self::Running { .. }, FinalStatus::Completed) => Ok(Self::Completed { at: now }),
            (Self::Running { .. }, FinalStatus::Failed) => Ok(Self::Failed {
                at: now,
                error: None,
            }),
            (state @ Self::Completed { .. }, FinalStatus::Completed)
            | (state @ Self::Failed { .. }, FinalStatus::Failed) => Ok(state),
            (state, _) => Err(CloseError::EndedOtherwise(state.as_str())),
        }
    }

    /// Fails it when its deadline has passed.
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

    /// Why it failed, where the platform knows.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => error.as_deref(),
            _ => None,
        }
    }

    /// Whether it has ended, for good.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.completed_at().is_some()
    }

    /// Whether writes and uploads are accepted.
    #[must_use]
    pub fn is_open(&self, now: OffsetDateTime) -> bool {
        matches!(self, Self::Running { deadline } if deadline.is_none_or(|deadline| now < deadline))
    }
}

/// The error message of an execution that the platform failed at its deadline.
pub const TIMED_OUT: &str = "timed out: it was not closed within its timeout_minutes";

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    #[test]
    fn the_same_final_status_again_changes_nothing() {
        let done = ExecutionState::start(NOW, None)
            .close(FinalStatus::Completed, NOW)
            .unwrap();
        let later = NOW + Duration::hours(1);
        assert_eq!(done.clone().close(FinalStatus::Completed, later), Ok(done));
    }

    #[test]
    fn another_final_status_is_refused() {
        let done = ExecutionState::start(NOW, None)
            .close(FinalStatus::Completed, NOW)
            .unwrap();
        assert_eq!(
            done.close(FinalStatus::Failed, NOW),
            Err(CloseError::EndedOtherwise("completed"))
        );
    }

    fn execution(origin: Origin, state: ExecutionState) -> Execution {
        Execution {
            id: ExecutionId::new(Uuid::from_u128(1)),
            job_id: JobId::new(Uuid::from_u128(2)),
            job_name: "parse".to_owned(),
            origin,
            state,
            created_at: NOW,
            started_at: Some(NOW),
        }
    }

    fn every_state() -> [ExecutionState; 5] {
        [
            ExecutionState::Queued,
            ExecutionState::Running { deadline: None },
            ExecutionState::Completed { at: NOW },
            ExecutionState::Failed {
                at: NOW,
                error: None,
            },
            ExecutionState::Cancelled { at: NOW },
        ]
    }

    #[test]
    fn a_run_on_the_platform_is_never_closed_from_outside() {
        for state in every_state() {
            for status in [FinalStatus::Completed, FinalStatus::Failed] {
                let run = execution(Origin::Platform(PlatformRun::of_version(1)), state.clone());
                assert_eq!(run.close(status, NOW), Err(CloseError::RunsOnPlatform));
            }
        }
    }

    #[test]
    fn a_worker_ends_a_running_run_only() {
        let end = RunEnd {
            exit_code: Some(0),
            error: None,
        };
        for state in every_state() {
            let run = execution(Origin::Platform(PlatformRun::of_version(1)), state.clone());
            let ended = run.end(&end, NOW).map(|run| run.state);
            let expected =
                (state.as_str() == "running").then_some(ExecutionState::Completed { at: NOW });
            assert_eq!(ended, expected);
            let elsewhere = execution(Origin::OffPlatform, state);
            assert_eq!(elsewhere.end(&end, NOW), None);
        }
    }

    #[test]
    fn what_has_ended_cannot_be_cancelled() {
        for origin in [
            Origin::OffPlatform,
            Origin::Platform(PlatformRun::of_version(1)),
        ] {
            for state in every_state() {
                let standing = execution(origin.clone(), state.clone());
                match standing.cancel(NOW) {
                    Ok(cancelled) => {
                        assert!(!state.has_ended());
                        assert_eq!(cancelled.state, ExecutionState::Cancelled { at: NOW });
                    }
                    Err(error) => assert_eq!(error, CancelError::Ended(state.as_str())),
                }
            }
        }
    }

    #[test]
    fn past_its_deadline_it_is_failed_and_cannot_be_completed() {
        let state = ExecutionState::start(NOW, Some(1));
        let later = NOW + Duration::minutes(1);
        assert!(state.is_open(NOW));
        assert!(!state.is_open(later));
        assert_eq!(state.clone().expire(later).as_str(), "failed");
        assert_eq!(
            state.close(FinalStatus::Completed, later),
            Err(CloseError::EndedOtherwise("failed"))
        );
    }
}
