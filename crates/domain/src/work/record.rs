//! Records of work, their transitions, and the ends of work of any kind.

use time::OffsetDateTime;

use super::{RunEnd, WorkId, WorkKind};
use crate::{
    executions::Execution,
    ids::ExecutionId,
    models::{ModelVersion, TrainingEnd},
    notifications::{has_failure_notice, has_training_notice},
};

/// Record of work, as users see it.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkRecord {
    /// A run on the platform.
    Run(Box<Execution>),
    /// The version that a training makes.
    Training(Box<ModelVersion>),
}

/// Consequence of the loss of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerLoss {
    /// The record of the work: failed, or a training that is queued again.
    pub record: WorkRecord,
    /// The execution that retries a run. It takes the place of the lost one in the queue, and its starter.
    pub retry: Option<Execution>,
}

/// End of work, as its worker reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkEnd {
    /// Of a run.
    Run(RunEnd),
    /// Of a training.
    Training(TrainingEnd),
}

/// Why the script of work did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// The platform could not assemble it.
    NotAssembled,
    /// The backend was not available.
    Unavailable(String),
    /// The backend, or a rule for it, refuses it.
    Refused(String),
}

impl WorkEnd {
    /// The end of work of that kind whose script did not start.
    #[must_use]
    pub fn not_started(kind: WorkKind, reason: &NotStarted) -> Self {
        match (kind, reason) {
            (WorkKind::Run, NotStarted::NotAssembled) => Self::Run(RunEnd::not_assembled()),
            (WorkKind::Run, NotStarted::Unavailable(cause)) => {
                Self::Run(RunEnd::not_submitted(cause))
            }
            (WorkKind::Run, NotStarted::Refused(reason)) => Self::Run(RunEnd::refused(reason)),
            (WorkKind::Training, NotStarted::NotAssembled) => {
                Self::Training(TrainingEnd::not_assembled())
            }
            (WorkKind::Training, NotStarted::Unavailable(cause) | NotStarted::Refused(cause)) => {
                Self::Training(TrainingEnd::not_submitted(cause))
            }
        }
    }
}

impl WorkRecord {
    /// Returns the id of the work.
    #[must_use]
    pub const fn id(&self) -> WorkId {
        match self {
            Self::Run(execution) => WorkId::Execution(execution.id),
            Self::Training(version) => WorkId::Training(version.version),
        }
    }

    /// Returns the name of its state.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Run(execution) => execution.state.as_str(),
            Self::Training(version) => version.state.as_str(),
        }
    }

    /// Returns true once it has ended.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        match self {
            Self::Run(execution) => execution.state.has_ended(),
            Self::Training(version) => !version.state.is_in_flight(),
        }
    }

    /// Returns true if someone is notified of its end.
    #[must_use]
    pub fn has_notice(&self) -> bool {
        match self {
            Self::Run(execution) => has_failure_notice(execution),
            Self::Training(version) => has_training_notice(version),
        }
    }

    /// Returns running work to the queue; `None` unless it runs.
    #[must_use]
    pub fn requeue(self) -> Option<Self> {
        match self {
            Self::Run(execution) => execution.requeue().map(Self::run),
            Self::Training(version) => version.requeue().map(Self::training),
        }
    }

    /// Ends running work; `None` unless it runs, and is of the kind of the end. A version does not
    /// become active by that alone ([`becomes_active`](crate::models::becomes_active)).
    #[must_use]
    pub fn end(self, end: &WorkEnd, now: OffsetDateTime) -> Option<Self> {
        match (self, end) {
            (Self::Run(execution), WorkEnd::Run(end)) => execution.end(end, now).map(Self::run),
            (Self::Training(version), WorkEnd::Training(end)) => {
                version.end(end, now).map(Self::training)
            }
            _ => None,
        }
    }

    /// Takes running work from a lost worker; `None` unless it runs. A training, which has lost that many
    /// workers by now, has written nothing and retries under its own id; a run is retried by the execution
    /// with the id `retry`.
    #[must_use]
    pub fn lose_worker(
        self,
        lost_workers: u32,
        retry: ExecutionId,
        now: OffsetDateTime,
    ) -> Option<WorkerLoss> {
        let (record, retry) = match self {
            Self::Run(execution) => {
                let (failed, retry) = execution.lose_worker(retry, now)?;
                (Self::run(failed), retry)
            }
            Self::Training(version) => {
                let version = version.lose_worker(lost_workers, now)?;
                (Self::training(version), None)
            }
        };
        Some(WorkerLoss { record, retry })
    }

    fn run(execution: Execution) -> Self {
        Self::Run(Box::new(execution))
    }

    fn training(version: ModelVersion) -> Self {
        Self::Training(Box::new(version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_does_not_start_ends_with_the_words_of_its_kind() {
        let unavailable = NotStarted::Unavailable("Ray does not respond".to_owned());
        let WorkEnd::Run(run) = WorkEnd::not_started(WorkKind::Run, &unavailable) else {
            panic!("a run ends as a run");
        };
        assert_eq!(
            run.error.as_deref(),
            Some("preparing failed: Ray does not respond")
        );
        let training = WorkEnd::not_started(WorkKind::Training, &unavailable);
        let expected = "the training did not start: Ray does not respond";
        assert_eq!(
            training,
            WorkEnd::Training(TrainingEnd::Failed(expected.to_owned()))
        );
    }
}
