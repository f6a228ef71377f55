//! Job executions: one run of a script, and all that it produced.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use crate::ids::{ExecutionId, JobId};

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
    /// Writes and uploads are accepted.
    Running {
        /// When the platform fails it unless it is closed before.
        deadline: Option<OffsetDateTime>,
    },
    /// Closed as completed.
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
}

/// Whose script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Opened by `POST /job-executions` for a script that runs elsewhere; closed by it.
    OffPlatform,
    /// Created by a data write that named none, and completed with it.
    DataWrite,
}

impl Origin {
    /// The origin's name in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OffPlatform => "off_platform",
            Self::DataWrite => "data_write",
        }
    }

    /// The origin of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::OffPlatform, Self::DataWrite]
            .into_iter()
            .find(|origin| origin.as_str() == name)
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
}

impl ExecutionState {
    /// The state's name in the API and the database.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running { .. } => "running",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
        }
    }

    /// When it ended.
    #[must_use]
    pub const fn completed_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Running { .. } => None,
            Self::Completed { at } | Self::Failed { at, .. } => Some(*at),
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
