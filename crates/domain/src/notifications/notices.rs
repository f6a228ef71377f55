//! Notifications that the platform sends itself.

use serde_json::{Map, Value};

use super::{Draft, MAX_BODY, MAX_TITLE};
use crate::{
    executions::{Execution, ExecutionState, TIMED_OUT},
    runs::TIMED_OUT_AFTER,
};

/// Returns true if the user who started the execution gets a notice of its end: it has failed.
#[must_use]
pub const fn has_failure_notice(ended: &Execution) -> bool {
    matches!(ended.state, ExecutionState::Failed { .. })
}

/// Makes the notice that an execution has failed; `None` for one that has not. Its deduplication
/// key is the same every time.
#[must_use]
pub fn failure_notice(execution: &Execution) -> Option<Draft> {
    let ExecutionState::Failed { error, .. } = &execution.state else {
        return None;
    };
    let timed_out = error
        .as_deref()
        .is_some_and(|error| error == TIMED_OUT || error.starts_with(TIMED_OUT_AFTER));
    let how = if timed_out { "timed out" } else { "failed" };
    let id = execution.id.to_string();
    let ending = format!("\" {how}");
    let room = MAX_TITLE.saturating_sub(ending.chars().count() + 1);
    let body = error
        .as_deref()
        .unwrap_or("Its script closed it as failed.");
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
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        executions::Origin,
        ids::{ExecutionId, JobId},
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
}
