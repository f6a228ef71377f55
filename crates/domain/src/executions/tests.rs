//! States of executions and their transitions, each as a sentence.

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
fn an_execution_of_a_data_write_is_never_closed_from_outside() {
    for state in every_state() {
        for status in [FinalStatus::Completed, FinalStatus::Failed] {
            let write = execution(Origin::DataWrite, state.clone());
            assert_eq!(write.close(status, NOW), Err(CloseError::CreatedByWrite));
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
        trigger: None,
        scopes: crate::people::scope::Scopes::all(),
        queued_at: NOW,
    };
    let expected = PlatformRun {
        trigger_file: run.trigger_file,
        parameters: run.parameters.clone(),
        source: run.source,
        ..PlatformRun::of_version(3)
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
fn a_run_that_lost_its_worker_fails_and_is_retried_once() {
    let first = Execution {
        created_at: NOW - Duration::HOUR,
        ..execution(
            Origin::Platform(PlatformRun {
                parameters: Map::from_iter([("a".to_owned(), Value::from(1))]),
                source: Some(ExecutionId::new(Uuid::from_u128(5))),
                ..PlatformRun::of_version(3)
            }),
            ExecutionState::Running { deadline: None },
        )
    };
    let ids = [7, 8].map(|id| ExecutionId::new(Uuid::from_u128(id)));
    let (failed, retry) = first.clone().lose_worker(ids[0], NOW).unwrap();
    let retry = retry.unwrap();
    assert_eq!(failed.state.error(), Some(WORKER_LOST));
    assert_eq!(
        (failed.retry_of(), failed.retried_by()),
        (None, Some(ids[0]))
    );
    assert!(failed.state.has_ended() && !failed.has_finally_ended());
    assert_eq!(failed.cancel(NOW), Err(CancelError::Retried(ids[0])));
    let expected = PlatformRun {
        retry_of: Some(first.id),
        ..first.origin.run().unwrap().clone()
    };
    assert_eq!(
        retry,
        Execution {
            id: ids[0],
            origin: Origin::Platform(expected.clone()),
            state: ExecutionState::Queued,
            created_at: NOW,
            started_at: None,
            ..first
        }
    );
    let running = retry.claim(NOW, Duration::HOUR).unwrap();
    let (failed, retry) = running.lose_worker(ids[1], NOW).unwrap();
    assert_eq!(
        (failed.state.error(), retry),
        (Some(WORKER_LOST_AGAIN), None)
    );
    assert!(failed.has_finally_ended());
    assert_eq!(failed.origin, Origin::Platform(expected));
}

#[test]
fn only_a_running_run_on_the_platform_loses_its_worker() {
    let retry = ExecutionId::new(Uuid::from_u128(7));
    for state in every_state() {
        let is_running = state.as_str() == "running";
        let run = execution(Origin::Platform(PlatformRun::of_version(1)), state.clone());
        assert_eq!(run.lose_worker(retry, NOW).is_some(), is_running);
        assert_eq!(
            execution(Origin::OffPlatform, state).lose_worker(retry, NOW),
            None
        );
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
fn only_its_agent_ends_the_execution_of_an_agent() {
    let open = execution(Origin::Agent, ExecutionState::start(NOW, Some(1)));
    assert_eq!(
        open.clone().close(FinalStatus::Completed, NOW),
        Err(CloseError::OfAgent)
    );
    let failed = AgentEnd::Failed("no answer".to_owned());
    let ended = open.clone().end_agent(&failed, NOW).unwrap();
    assert_eq!(ended.state.error(), Some("no answer"));
    assert_eq!(ended.clone().end_agent(&failed, NOW), Ok(ended.clone()));
    assert_eq!(
        ended.end_agent(&AgentEnd::Completed, NOW),
        Err(CloseError::EndedOtherwise("failed"))
    );
    let late = open.clone().end_agent(&failed, NOW + Duration::MINUTE);
    assert_eq!(late.unwrap().state.error(), Some(TIMED_OUT));
    let cancelled = open.cancel(NOW).unwrap();
    assert_eq!(
        cancelled.end_agent(&AgentEnd::Completed, NOW),
        Err(CloseError::EndedOtherwise("cancelled"))
    );
    let run = Origin::Platform(PlatformRun::of_version(1));
    let run = execution(run, ExecutionState::start(NOW, None));
    assert_eq!(
        run.end_agent(&AgentEnd::Completed, NOW),
        Err(CloseError::RunsOnPlatform)
    );
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

#[test]
fn origins_have_the_names_that_the_database_stores() {
    for (origin, name) in [
        (Origin::OffPlatform, "off_platform"),
        (Origin::DataWrite, "data_write"),
        (Origin::Platform(PlatformRun::of_version(1)), "platform"),
    ] {
        assert_eq!(origin.as_str(), name);
        assert_eq!(origin.run().is_some(), name == "platform");
    }
}

#[test]
fn a_deadline_is_a_running_executions_and_an_error_a_failed_ones() {
    let running = ExecutionState::start(NOW, Some(2));
    let deadline = NOW + Duration::minutes(2);
    assert_eq!(running.deadline(), Some(deadline));
    assert_eq!(ExecutionState::start(NOW, None).deadline(), None);
    assert_eq!(running.error(), None);
    assert!(!running.has_ended());
    let before = deadline - Duration::MICROSECOND;
    assert_eq!(running.clone().expire(before), running);
    let failed = running.expire(deadline);
    assert_eq!(failed.error(), Some(TIMED_OUT));
    assert_eq!(failed.deadline(), None);
    assert_eq!(failed.completed_at(), Some(deadline));
    assert!(failed.has_ended());
}

#[test]
fn every_state_but_queued_and_running_has_ended() {
    let ended = every_state().map(|state| (state.as_str(), state.has_ended()));
    assert_eq!(
        ended,
        [
            ("queued", false),
            ("running", false),
            ("completed", true),
            ("failed", true),
            ("cancelled", true)
        ]
    );
}

#[test]
fn a_script_closes_its_execution_and_its_worker_stores_the_exit_code() {
    let elsewhere = execution(Origin::OffPlatform, ExecutionState::start(NOW, None));
    let closed = elsewhere.clone().close(FinalStatus::Failed, NOW).unwrap();
    let failed = ExecutionState::Failed {
        at: NOW,
        error: None,
    };
    assert_eq!(
        closed,
        Execution {
            state: failed,
            ..elsewhere
        }
    );
    let run = execution(
        Origin::Platform(PlatformRun::of_version(1)),
        ExecutionState::start(NOW, None),
    );
    let end = RunEnd {
        exit_code: Some(3),
        error: Some("no wells".to_owned()),
    };
    let ended = run.end(&end, NOW).unwrap();
    assert_eq!(ended.origin.run().and_then(|run| run.exit_code), Some(3));
    assert_eq!(ended.state.error(), Some("no wells"));
}
