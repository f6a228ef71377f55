//! Job executions: their states and transitions. Everything a script writes is attributed to one.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use crate::{
    ids::{ExecutionId, JobId},
    runs::{NewRun, PlatformRun, RunEnd},
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

/// Where an execution's script runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Outside the platform: opened by `POST /job-executions` and closed by the script.
    OffPlatform,
    /// Nowhere: created by a data write that names no execution, and completed with it.
    DataWrite,
    /// On the platform, which alone records its state.
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

    /// Details of a run on the platform.
    #[must_use]
    pub const fn run(&self) -> Option<&PlatformRun> {
        match self {
            Self::Platform(run) => Some(run),
            Self::OffPlatform | Self::DataWrite => None,
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
    /// Where the script runs.
    pub origin: Origin,
    /// Its state.
    pub state: ExecutionState,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it started.
    pub started_at: Option<OffsetDateTime>,
}

/// Why an execution cannot be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// It has ended with another status.
    #[error("this execution is already {0}, which is final")]
    EndedOtherwise(&'static str),
    /// It runs on the platform.
    #[error(
        "this execution runs on the platform, which records itself how it ends; to stop it, \
         cancel it"
    )]
    RunsOnPlatform,
}

/// Why an execution cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// It has ended.
    #[error("this execution is already {0}, which is final")]
    Ended(&'static str),
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
                script_version: run.script_version,
                trigger_file: run.trigger_file,
                parameters: run.parameters.clone(),
                source: run.source,
                exit_code: None,
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
    /// [`CloseError::RunsOnPlatform`] for a run on the platform; the state's refusal.
    pub fn close(self, status: FinalStatus, now: OffsetDateTime) -> Result<Self, CloseError> {
        if self.origin.run().is_some() {
            return Err(CloseError::RunsOnPlatform);
        }
        Ok(Self {
            state: self.state.close(status, now)?,
            ..self
        })
    }

    /// Fails it if its deadline has passed; `None` if not. The deadline of a run on the platform is
    /// its worker's concern, who knows whether the script ended in time.
    #[must_use]
    pub fn expire(self, now: OffsetDateTime) -> Option<Self> {
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

    /// Cancels it, wherever it runs.
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

    /// Whether it has ended. An end is final.
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
    use serde_json::{Map, Value};
    use uuid::Uuid;

    use super::*;
    use crate::ids::{FileId, UserId};

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
    fn the_names_are_those_of_every_state() {
        let names: Vec<&str> = every_state().iter().map(ExecutionState::as_str).collect();
        assert_eq!(names, ExecutionState::NAMES);
        let closed = [FinalStatus::Completed, FinalStatus::Failed].map(|status| {
            let running = execution(Origin::OffPlatform, ExecutionState::start(NOW, None));
            let name = running
                .close(status, NOW)
                .map(|closed| closed.state.as_str());
            (name.unwrap_or_default(), status)
        });
        assert_eq!(closed, FinalStatus::ALL);
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
    fn a_queued_run_waits_with_everything_it_was_queued_with() {
        let run = NewRun {
            id: ExecutionId::new(Uuid::from_u128(1)),
            job: JobId::new(Uuid::from_u128(2)),
            script_version: 3,
            trigger_file: Some(FileId::new(Uuid::from_u128(4))),
            parameters: Map::from_iter([("a".to_owned(), Value::from(1))]),
            source: Some(ExecutionId::new(Uuid::from_u128(5))),
            started_by: UserId::new(Uuid::from_u128(6)),
            api_key: None,
            queued_at: NOW,
        };
        let expected = PlatformRun {
            script_version: 3,
            trigger_file: run.trigger_file,
            parameters: run.parameters.clone(),
            source: run.source,
            exit_code: None,
        };
        let queued = Execution {
            started_at: None,
            ..execution(Origin::Platform(expected), ExecutionState::Queued)
        };
        assert_eq!(Execution::queue(&run, "parse".to_owned()), queued);
    }

    #[test]
    fn a_claim_starts_a_queued_run_only() {
        let later = NOW + Duration::hours(1);
        for state in every_state() {
            let run = execution(Origin::Platform(PlatformRun::of_version(1)), state.clone());
            let claimed = run.claim(later, Duration::minutes(5));
            let expected = ExecutionState::Running {
                deadline: Some(later + Duration::minutes(5)),
            };
            let started = claimed.map(|run| (run.state, run.started_at));
            let is_queued = state == ExecutionState::Queued;
            assert_eq!(started, is_queued.then_some((expected, Some(later))));
        }
    }

    #[test]
    fn only_a_running_run_returns_to_the_queue() {
        for state in every_state() {
            let run = execution(Origin::Platform(PlatformRun::of_version(1)), state.clone());
            let requeued = run.requeue().map(|run| (run.state, run.started_at));
            let is_running = state.as_str() == "running";
            assert_eq!(
                requeued,
                is_running.then_some((ExecutionState::Queued, None))
            );
            assert_eq!(execution(Origin::OffPlatform, state).requeue(), None);
        }
    }

    #[test]
    fn only_what_runs_elsewhere_past_its_deadline_expires() {
        let overdue = ExecutionState::Running {
            deadline: Some(NOW),
        };
        let failed = ExecutionState::Failed {
            at: NOW,
            error: Some(TIMED_OUT.to_owned()),
        };
        let expired = execution(Origin::OffPlatform, overdue.clone()).expire(NOW);
        assert_eq!(expired.map(|execution| execution.state), Some(failed));
        let early = NOW - Duration::MICROSECOND;
        assert_eq!(
            execution(Origin::OffPlatform, overdue.clone()).expire(early),
            None
        );
        let run = execution(Origin::Platform(PlatformRun::of_version(1)), overdue);
        assert_eq!(run.expire(NOW), None);
        for state in every_state() {
            assert_eq!(execution(Origin::OffPlatform, state).expire(NOW), None);
        }
    }

    #[test]
    fn a_worker_records_how_the_script_ended() {
        let running = ExecutionState::Running { deadline: None };
        let end = RunEnd {
            exit_code: Some(3),
            error: Some("ValueError".to_owned()),
        };
        let run = execution(Origin::Platform(PlatformRun::of_version(1)), running);
        let ended = run.end(&end, NOW).unwrap();
        assert_eq!(ended.state.error(), Some("ValueError"));
        assert_eq!(ended.state.completed_at(), Some(NOW));
        assert_eq!(ended.origin.run().unwrap().exit_code, Some(3));
    }

    #[test]
    fn a_data_write_completes_its_execution_and_a_script_starts_its_own() {
        let id = ExecutionId::new(Uuid::from_u128(1));
        let job = JobId::new(Uuid::from_u128(2));
        let completed = ExecutionState::Completed { at: NOW };
        assert_eq!(
            Execution::of_data_write(id, job, "parse".to_owned(), NOW),
            execution(Origin::DataWrite, completed)
        );
        let running = ExecutionState::Running {
            deadline: Some(NOW + Duration::minutes(7)),
        };
        assert_eq!(
            Execution::start(id, job, "parse".to_owned(), Some(7), NOW),
            execution(Origin::OffPlatform, running)
        );
    }

    #[test]
    fn past_its_deadline_an_execution_elsewhere_cannot_be_cancelled_but_a_run_can() {
        let overdue = ExecutionState::Running {
            deadline: Some(NOW),
        };
        let elsewhere = execution(Origin::OffPlatform, overdue.clone());
        assert_eq!(elsewhere.cancel(NOW), Err(CancelError::Ended("failed")));
        let run = execution(Origin::Platform(PlatformRun::of_version(1)), overdue);
        assert!(run.cancel(NOW).is_ok());
    }

    #[test]
    fn what_has_ended_cannot_be_cancelled() {
        for origin in [
            Origin::OffPlatform,
            Origin::Platform(PlatformRun::of_version(1)),
        ] {
            for state in every_state() {
                let before = execution(origin.clone(), state.clone());
                match before.cancel(NOW) {
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
