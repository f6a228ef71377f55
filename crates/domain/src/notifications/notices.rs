//! Notifications that the platform sends itself.

use serde_json::{Map, Value};

use super::{Draft, MAX_BODY, MAX_TITLE};
use crate::{
    executions::{Execution, ExecutionState, Origin, TIMED_OUT},
    models::{ModelVersion, VersionState},
    work::TIMED_OUT_AFTER,
};

/// Ended work of which a user is notified.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// An execution.
    Execution(Box<Execution>),
    /// The training of a version of a model.
    Training(Box<ModelVersion>),
}

impl Ended {
    /// Makes the notice of the end; `None` if it has none. Its deduplication key is the same every time.
    #[must_use]
    pub fn notice(&self) -> Option<Draft> {
        match self {
            Self::Execution(execution) => failure_notice(execution),
            Self::Training(version) => training_notice(version),
        }
    }
}

/// Returns true if the user who requested the training gets a notice of its end: it is ready, or it
/// has failed.
#[must_use]
pub const fn has_training_notice(ended: &ModelVersion) -> bool {
    matches!(
        ended.state,
        VersionState::Ready { .. } | VersionState::Failed { .. }
    )
}

/// Makes the notice that a version is ready or that its training has failed; `None` in any other state.
/// Its deduplication key is the same every time.
#[must_use]
pub fn training_notice(version: &ModelVersion) -> Option<Draft> {
    let (kind, beginning, ending, body) = match &version.state {
        VersionState::Ready { .. } => ("ready", "Model \"", "\" is ready", metrics(version)),
        VersionState::Failed { error, .. } => {
            let body = format!("Version {}: {error}", version.number);
            ("failed", "Training of \"", "\" failed", body)
        }
        _ => return None,
    };
    // Only the name is shortened: the rest of the title says what happened.
    let room = MAX_TITLE.saturating_sub(beginning.chars().count() + ending.chars().count());
    let name = shortened(&version.name, room);
    let data = [
        ("ml_model_id", Value::String(version.model.to_string())),
        ("ml_model_name", Value::String(version.name.clone())),
        ("version_number", Value::from(version.number)),
    ];
    Some(Draft {
        title: format!("{beginning}{name}{ending}"),
        // Fixed per version and outcome, so that a repeated report notifies once.
        dedupe_key: format!("platform/model-{kind}/{}", version.version),
        body: shortened(&body, MAX_BODY),
        action_url: format!("/ml-models/{}", version.model),
        data: Some(Map::from_iter(
            data.map(|(name, value)| (name.to_owned(), value)),
        )),
    })
}

/// Describes a ready version: its number, its metrics, and whether it responds predictions.
fn metrics(version: &ModelVersion) -> String {
    let metrics = version.metrics.iter().flatten();
    let metrics: Vec<String> = metrics
        .map(|(name, metric)| format!("{name} {:.4}", metric.value))
        .collect();
    let number = version.number;
    let activity = if version.is_active {
        "It predicts from now on."
    } else {
        "A newer version is active."
    };
    if metrics.is_empty() {
        format!("Version {number} is ready. {activity}")
    } else {
        format!("Version {number}: {}. {activity}", metrics.join(", "))
    }
}

/// Returns true if the user who started the execution gets a notice of its end: it has failed, and no
/// other one retries it.
#[must_use]
pub fn has_failure_notice(ended: &Execution) -> bool {
    matches!(ended.state, ExecutionState::Failed { .. }) && ended.has_finally_ended()
}

/// Makes the notice that an execution has failed; `None` for one that has not. Its deduplication
/// key is the same every time.
#[must_use]
pub fn failure_notice(execution: &Execution) -> Option<Draft> {
    let ExecutionState::Failed { error, .. } = &execution.state else {
        return None;
    };
    // A timeout is a failure; executions elsewhere and runs here only word its message differently.
    let timed_out = error
        .as_deref()
        .is_some_and(|error| error == TIMED_OUT || error.starts_with(TIMED_OUT_AFTER));
    let how = if timed_out { "timed out" } else { "failed" };
    let id = execution.id.to_string();
    let ending = format!("\" {how}");
    let room = MAX_TITLE.saturating_sub(ending.chars().count() + 1);
    let body = error.as_deref().unwrap_or(match &execution.origin {
        Origin::OffPlatform => "Its script closed it as failed.",
        Origin::DataWrite | Origin::Agent | Origin::Platform(_) => "It failed without a message.",
    });
    let data = [
        ("job_execution_id", id.clone()),
        ("job_id", execution.job_id.to_string()),
        ("job_name", execution.job_name.clone()),
    ];
    Some(Draft {
        title: format!("\"{}{ending}", shortened(&execution.job_name, room)),
        dedupe_key: format!("platform/execution-failed/{id}"),
        body: shortened(body, MAX_BODY),
        action_url: format!("/job-executions/{id}"),
        data: Some(Map::from_iter(
            data.map(|(name, value)| (name.to_owned(), Value::String(value))),
        )),
    })
}

/// Shortens a text to at most `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    // One less, for the ellipsis.
    let stored = text.chars().take(most.saturating_sub(1));
    stored.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{ExecutionId, JobId},
        work::PlatformRun,
    };

    use crate::{
        ids::{DatasetId, ModelId, ModelVersionId, UserId},
        models::{
            Metric, NewModel, NewVersion, ProblemType, QualityPreset, TaskType, TrainingPlan,
        },
    };

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn execution(job_name: &str, state: ExecutionState) -> Execution {
        Execution {
            id: ExecutionId::new(Uuid::from_u128(1)),
            job_id: JobId::new(Uuid::from_u128(2)),
            job_name: job_name.to_owned(),
            origin: Origin::OffPlatform,
            state,
            created_at: NOW,
            started_at: Some(NOW),
        }
    }

    #[test]
    fn a_notice_can_always_be_sent() {
        for error in [None, Some("x".repeat(20_000)), Some(TIMED_OUT.to_owned())] {
            let failed = ExecutionState::Failed { at: NOW, error };
            for name in ["parse plates".to_owned(), "ü".repeat(5_000)] {
                let notice = failure_notice(&execution(&name, failed.clone())).unwrap();
                assert_eq!(notice.check(), Ok(()), "{}", notice.title);
            }
        }
    }

    #[test]
    fn only_a_failed_execution_has_a_notice() {
        let failed = ExecutionState::Failed {
            at: NOW,
            error: None,
        };
        for (state, expected) in [
            (failed, true),
            (ExecutionState::Completed { at: NOW }, false),
            (ExecutionState::Cancelled { at: NOW }, false),
            (ExecutionState::Queued, false),
            (ExecutionState::start(NOW, None), false),
        ] {
            let execution = execution("parse", state);
            assert_eq!(has_failure_notice(&execution), expected);
            assert_eq!(failure_notice(&execution).is_some(), expected);
        }
    }

    #[test]
    fn a_failed_execution_that_is_retried_has_no_notice() {
        let run = Origin::Platform(PlatformRun::of_version(1));
        let running = Execution {
            origin: run,
            ..execution("parse", ExecutionState::start(NOW, None))
        };
        let retry = ExecutionId::new(Uuid::from_u128(9));
        let (failed, _) = running.lose_worker(retry, NOW).unwrap();
        assert!(!has_failure_notice(&failed));
    }

    #[test]
    fn a_notice_says_whether_the_execution_failed_or_timed_out() {
        let title = |error: Option<&str>| {
            let failed = ExecutionState::Failed {
                at: NOW,
                error: error.map(str::to_owned),
            };
            failure_notice(&execution("parse", failed)).map(|notice| notice.title)
        };
        assert_eq!(title(None).as_deref(), Some("\"parse\" failed"));
        assert_eq!(
            title(Some("exit code 1")).as_deref(),
            Some("\"parse\" failed")
        );
        assert_eq!(
            title(Some(TIMED_OUT)).as_deref(),
            Some("\"parse\" timed out")
        );
        assert_eq!(
            failure_notice(&execution("parse", ExecutionState::start(NOW, None))),
            None
        );
    }

    fn version(name: &str, state: VersionState) -> ModelVersion {
        let model = NewModel {
            id: ModelId::new(Uuid::from_u128(3)),
            name: name.to_owned(),
        };
        let new = NewVersion {
            id: ModelVersionId::new(Uuid::from_u128(4)),
            description: None,
            dataset: DatasetId::new(Uuid::from_u128(5)),
            plan: TrainingPlan {
                target: "cultivar".to_owned(),
                features: Vec::new(),
                images: Vec::new(),
                task: TaskType::Tabular,
                problem: ProblemType::Multiclass,
                preset: QualityPreset::Medium,
            },
            requested_by: UserId::new(Uuid::from_u128(6)),
            requested_at: NOW,
        };
        let metric = Metric {
            value: 0.972_22,
            higher_is_better: true,
        };
        ModelVersion {
            state,
            is_active: true,
            metrics: Some([("accuracy".to_owned(), metric)].into()),
            ..ModelVersion::queue(&model, 2, &new)
        }
    }

    const READY: VersionState = VersionState::Ready {
        started_at: NOW,
        completed_at: NOW,
    };

    fn failed(error: &str) -> VersionState {
        VersionState::Failed {
            started_at: None,
            completed_at: NOW,
            error: error.to_owned(),
        }
    }

    #[test]
    fn a_notice_of_a_training_can_always_be_sent() {
        for state in [READY, failed(&"x".repeat(20_000))] {
            for name in ["wine".to_owned(), "ü".repeat(5_000)] {
                let notice = training_notice(&version(&name, state.clone())).unwrap();
                assert_eq!(notice.check(), Ok(()), "{}", notice.title);
            }
        }
    }

    #[test]
    fn ready_and_failed_trainings_have_a_notice() {
        let pending = VersionState::Pending;
        let training = VersionState::Training { started_at: NOW };
        let cancelled = training.clone().cancel(NOW).unwrap();
        for (state, expected) in [
            (READY, true),
            (failed("no memory"), true),
            (pending, false),
            (training, false),
            (cancelled, false),
        ] {
            let version = version("wine", state);
            assert_eq!(has_training_notice(&version), expected);
            let ended = Ended::Training(Box::new(version));
            assert_eq!(ended.notice().is_some(), expected);
        }
    }

    #[test]
    fn a_notice_of_a_training_has_its_metrics_or_its_error() {
        let ready = training_notice(&version("wine", READY)).unwrap();
        assert_eq!(ready.title, "Model \"wine\" is ready");
        assert_eq!(
            ready.body,
            "Version 2: accuracy 0.9722. It predicts from now on."
        );
        let failed = training_notice(&version("wine", failed("no memory"))).unwrap();
        assert_eq!(failed.title, "Training of \"wine\" failed");
        assert_eq!(failed.body, "Version 2: no memory");
        assert_ne!(ready.dedupe_key, failed.dedupe_key);
    }
}
