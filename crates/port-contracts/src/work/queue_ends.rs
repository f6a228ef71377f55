//! Contract of [`RunQueue`](labdata_ports::work::RunQueue): ends of runs and lost workers.

use futures::future::join_all;
use labdata_domain::{
    executions::{CancelError, Execution, ExecutionState, FinalStatus},
    ids::{ExecutionId, OrganizationId},
    jobs::Job,
    people::ApiKey,
    triggers::{Category, event::EventKind},
    work::{RunEnd, WORKER_LOST},
};
use labdata_ports::{
    jobs::JobRepository,
    people::ApiKeyRepository,
    work::{CancelExecutionError, RunClaim},
};
use serde_json::json;

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::Executions,
    given::{self, at},
    triggers::events::recorded_events,
    work::queue::{LEASE, Runs, claim, claimed, queued},
};

/// Makes one test of each clause of [`crate::work::queue_ends`].
#[macro_export]
macro_rules! run_queue_ends_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, run_queue_ends in work::queue_ends:
            finishing_stores_how_the_run_ended,
            a_run_is_finished_once,
            a_renewed_lease_does_not_end,
            a_run_whose_worker_is_lost_is_tried_once_more,
            a_lost_worker_can_do_nothing_about_the_run,
            a_released_run_is_queued_again_and_has_lost_no_worker,
            what_waits_or_runs_can_be_cancelled,
            what_has_ended_cannot_be_cancelled,
            the_worker_of_a_cancelled_run_learns_of_it,
            another_organizations_execution_cannot_be_cancelled,
            of_a_finish_and_a_cancel_exactly_one_wins,
            racing_sweepers_take_each_run_once,
            keys_die_with_the_hold_on_the_run,
            every_end_is_recorded_once,
            an_end_that_no_trigger_waits_for_is_no_event,
        }
    };
}

/// The end of a successful script.
fn completed() -> RunEnd {
    RunEnd {
        exit_code: Some(0),
        error: None,
    }
}

async fn stored<H: Runs>(harness: &H, claim: RunClaim) -> Execution {
    let executions = harness.executions();
    executions
        .get(claim.organization, claim.execution)
        .await
        .unwrap()
}

/// An end sets state, time, error and exit code, and returns what a read returns.
pub async fn finishing_stores_how_the_run_ended<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let failed = RunEnd {
        exit_code: Some(-9),
        error: Some("Traceback: \"no\\0 wells\"".to_owned()),
    };
    for (end, state) in [
        (completed(), ExecutionState::Completed { at: at(9) }),
        (
            failed.clone(),
            ExecutionState::Failed {
                at: at(9),
                error: failed.error,
            },
        ),
        (
            RunEnd::failed("its dependencies cannot be had"),
            ExecutionState::Failed {
                at: at(9),
                error: Some("its dependencies cannot be had".to_owned()),
            },
        ),
    ] {
        let run = claimed(harness, lab, at(0)).await;
        let ended = harness
            .queue()
            .finish(run.claim, &end, at(9))
            .await
            .unwrap();
        let ended = ended.unwrap();
        assert_eq!(ended.state, state);
        assert_eq!(ended.started_at, run.execution.started_at);
        assert_eq!(ended.origin.run().unwrap().exit_code, end.exit_code);
        assert_eq!(stored(harness, run.claim).await, ended);
    }
}

/// A second end is refused and changes nothing, and the run is not claimed again.
pub async fn a_run_is_finished_once<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await;
    let queue = harness.queue();
    let ended = queue.finish(run.claim, &completed(), at(9)).await.unwrap();
    let again = queue
        .finish(run.claim, &RunEnd::failed("late"), at(10))
        .await;
    assert_eq!(again.unwrap(), None);
    assert_eq!(Some(stored(harness, run.claim).await), ended);
    assert_eq!(claim(harness, at(11), 10).await, []);
    let expired = queue.expire(at(11) + LEASE, 10).await.unwrap();
    assert_eq!(expired, labdata_ports::work::ExpiredRuns::default());
}

/// A run whose worker renews its lease is not lost.
pub async fn a_renewed_lease_does_not_end<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await;
    let queue = harness.queue();
    for second in [10, 25, 40] {
        assert!(queue.renew(run.claim, at(second) + LEASE).await.unwrap());
        let expired = queue.expire(at(second + 15), 10).await.unwrap();
        assert_eq!((expired.requeued, expired.failed.len()), (0, 0));
    }
    assert_eq!(stored(harness, run.claim).await, run.execution);
    assert_eq!(queue.expire(at(40) + LEASE, 10).await.unwrap().requeued, 1);
}

/// The first lost worker puts the run back into the queue, the second fails it.
pub async fn a_run_whose_worker_is_lost_is_tried_once_more<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let waiting = queued(harness, lab, at(0)).await;
    let queue = harness.queue();
    assert_eq!(claim(harness, at(1), 1).await.len(), 1);
    let expired = queue.expire(at(1) + LEASE, 10).await.unwrap();
    assert_eq!((expired.requeued, expired.failed), (1, vec![]));
    let executions = harness.executions();
    assert_eq!(executions.get(lab, waiting.id).await.unwrap(), waiting);
    let second = claim(harness, at(30), 1).await.remove(0);
    assert_eq!(second.claim.attempt, 2);
    let expired = queue.expire(at(30) + LEASE, 10).await.unwrap();
    assert_eq!((expired.requeued, expired.failed.len()), (0, 1));
    let failed = &expired.failed[0];
    assert_eq!(failed.organization, lab);
    let state = ExecutionState::Failed {
        at: at(30) + LEASE,
        error: Some(WORKER_LOST.to_owned()),
    };
    assert_eq!(failed.execution.state, state);
    assert_eq!(stored(harness, second.claim).await, failed.execution);
    assert_eq!(claim(harness, at(90), 1).await, []);
}

/// A lost worker can change nothing of the run, neither while it is queued again nor while another
/// worker runs it.
pub async fn a_lost_worker_can_do_nothing_about_the_run<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await;
    let lost = claimed(harness, lab, at(0)).await.claim;
    let queue = harness.queue();
    queue.expire(at(0) + LEASE, 10).await.unwrap();
    for running_again in [false, true] {
        if running_again {
            assert_eq!(claim(harness, at(30), 1).await.len(), 1);
        }
        let standing = stored(harness, lost).await;
        let key = given::api_key(&user);
        assert!(!queue.renew(lost, at(90)).await.unwrap());
        assert!(!queue.release(lost, at(31)).await.unwrap());
        assert!(!queue.issue_key(lost, &key).await.unwrap());
        let ended = queue.finish(lost, &completed(), at(31)).await.unwrap();
        assert_eq!(ended, None);
        assert_eq!(stored(harness, lost).await, standing);
        let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
        assert!(keys.find_by_prefix(&key.prefix).await.unwrap().is_none());
    }
}

/// Releases of a run do not count as lost workers.
pub async fn a_released_run_is_queued_again_and_has_lost_no_worker<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let waiting = queued(harness, lab, at(0)).await;
    let queue = harness.queue();
    for attempt in 1..=4 {
        let run = claim(harness, at(10), 1).await.remove(0);
        assert_eq!(run.claim.attempt, attempt);
        assert!(queue.release(run.claim, at(11)).await.unwrap());
        assert!(!queue.release(run.claim, at(11)).await.unwrap());
        assert_eq!(stored(harness, run.claim).await, waiting);
    }
    claim(harness, at(20), 1).await;
    assert_eq!(queue.expire(at(20) + LEASE, 10).await.unwrap().requeued, 1);
}

/// Runs and off-platform executions can be cancelled; a cancelled run is not claimed.
pub async fn what_waits_or_runs_can_be_cancelled<H: Runs + Executions>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let running = claimed(harness, lab, at(0)).await.execution;
    let waiting = queued(harness, lab, at(1)).await;
    let elsewhere = harness.execution(lab, at(0), Some(60)).await;
    for execution in [running, waiting, elsewhere] {
        let queue = harness.queue();
        let cancelled = queue.cancel(lab, execution.id, at(5)).await.unwrap();
        let expected = Execution {
            state: ExecutionState::Cancelled { at: at(5) },
            ..execution
        };
        assert_eq!(cancelled, expected);
        let stored = harness.executions().get(lab, cancelled.id).await.unwrap();
        assert_eq!(stored, cancelled);
    }
    assert_eq!(claim(harness, at(6), 10).await, []);
}

/// An ended execution cannot be cancelled and is unchanged.
pub async fn what_has_ended_cannot_be_cancelled<H: Runs + Executions>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let queue = harness.queue();
    let finished = claimed(harness, lab, at(0)).await.claim;
    queue.finish(finished, &completed(), at(1)).await.unwrap();
    let cancelled = queued(harness, lab, at(0)).await.id;
    queue.cancel(lab, cancelled, at(1)).await.unwrap();
    let closed = harness.execution(lab, at(0), None).await.id;
    let executions = harness.executions();
    executions
        .close(lab, closed, FinalStatus::Failed, at(1))
        .await
        .unwrap();
    let overdue = harness.execution(lab, at(0), Some(1)).await.id;
    for (id, status) in [
        (finished.execution, "completed"),
        (cancelled, "cancelled"),
        (closed, "failed"),
        (overdue, "failed"),
    ] {
        let before = executions.get(lab, id).await.unwrap();
        match queue.cancel(lab, id, at(99)).await {
            Err(CancelExecutionError::Refused(CancelError::Ended(found))) => {
                assert_eq!(found, status);
            }
            other => panic!("expected a refusal, got {other:?}"),
        }
        assert_eq!(executions.get(lab, id).await.unwrap(), before);
    }
}

/// The heartbeat and the result of the worker of a cancelled run are refused.
pub async fn the_worker_of_a_cancelled_run_learns_of_it<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let run = claimed(harness, lab, at(0)).await.claim;
    let queue = harness.queue();
    let cancelled = queue.cancel(lab, run.execution, at(1)).await.unwrap();
    assert!(!queue.renew(run, at(90)).await.unwrap());
    assert!(!queue.release(run, at(2)).await.unwrap());
    assert_eq!(queue.finish(run, &completed(), at(2)).await.unwrap(), None);
    assert_eq!(stored(harness, run).await, cancelled);
}

/// Another organization's run is not found and is not cancelled.
pub async fn another_organizations_execution_cannot_be_cancelled<H: Runs>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let run = claimed(harness, theirs, at(0)).await;
    let unknown = ExecutionId::new(given::uuid());
    for id in [run.execution.id, unknown] {
        match harness.queue().cancel(ours, id, at(1)).await {
            Err(CancelExecutionError::Port(error)) => assert_not_found::<()>(Err(error)),
            other => panic!("expected NotFound, got {other:?}"),
        }
    }
    assert_eq!(stored(harness, run.claim).await, run.execution);
}

/// If an end and a cancel are concurrent, both callers learn which one won.
pub async fn of_a_finish_and_a_cancel_exactly_one_wins<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let queue = harness.queue();
    for _ in 0..8 {
        let run = claimed(harness, lab, at(0)).await.claim;
        let end = completed();
        let (finished, cancelled) = futures::join!(
            queue.finish(run, &end, at(1)),
            queue.cancel(lab, run.execution, at(2)),
        );
        let stored = stored(harness, run).await;
        match (finished.unwrap(), cancelled) {
            (Some(finished), Err(CancelExecutionError::Refused(_))) => assert_eq!(stored, finished),
            (None, Ok(cancelled)) => assert_eq!(stored, cancelled),
            other => panic!("expected one winner, got {other:?}"),
        }
    }
}

/// Concurrent sweepers count each lost worker once.
pub async fn racing_sweepers_take_each_run_once<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    for second in 0..6 {
        queued(harness, lab, at(second)).await;
    }
    assert_eq!(claim(harness, at(10), 6).await.len(), 6);
    let queue = harness.queue();
    let sweeps = join_all((0..4).map(|_| queue.expire(at(10) + LEASE, 100))).await;
    let requeued: u32 = sweeps
        .iter()
        .map(|swept| swept.as_ref().unwrap().requeued)
        .sum();
    assert_eq!(requeued, 6);
    assert_eq!(claim(harness, at(60), 100).await.len(), 6);
}

/// A new key of the run, stored.
async fn issued<H: Runs>(harness: &H, claim: RunClaim) -> ApiKey {
    let user = harness
        .user(claim.organization, "somebody@example.org")
        .await;
    let key = ApiKey {
        execution: Some(claim.execution),
        ..given::api_key(&user)
    };
    assert!(harness.queue().issue_key(claim, &key).await.unwrap());
    assert_eq!(revoked(harness, &key).await, None);
    key
}

async fn revoked<H: Runs>(harness: &H, key: &ApiKey) -> Option<time::OffsetDateTime> {
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    keys.find_by_prefix(&key.prefix)
        .await
        .unwrap()
        .unwrap()
        .key
        .revoked_at
}

/// A finish, a cancel, a release and a loss revoke the run's keys, and no other keys.
pub async fn keys_die_with_the_hold_on_the_run<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let queue = harness.queue();
    let other = claimed(harness, lab, at(0)).await.claim;
    let others = issued(harness, other).await;

    let run = claimed(harness, lab, at(0)).await.claim;
    let keys = [issued(harness, run).await, issued(harness, run).await];
    queue.finish(run, &completed(), at(5)).await.unwrap();
    for key in keys {
        assert_eq!(revoked(harness, &key).await, Some(at(5)));
    }

    let run = claimed(harness, lab, at(0)).await.claim;
    let key = issued(harness, run).await;
    queue.cancel(lab, run.execution, at(6)).await.unwrap();
    assert_eq!(revoked(harness, &key).await, Some(at(6)));

    let run = claimed(harness, lab, at(0)).await.claim;
    let key = issued(harness, run).await;
    queue.release(run, at(7)).await.unwrap();
    assert_eq!(revoked(harness, &key).await, Some(at(7)));

    let run = claim(harness, at(0), 1).await.remove(0).claim;
    let key = issued(harness, run).await;
    queue.renew(other, at(90)).await.unwrap();
    queue.expire(at(0) + LEASE, 10).await.unwrap();
    assert_eq!(revoked(harness, &key).await, Some(at(0) + LEASE));
    assert_eq!(revoked(harness, &others).await, None);
}

/// Subjects of the recorded events, which are handled.
async fn reported<H: Runs>(harness: &H) -> Vec<(OrganizationId, EventKind)> {
    let events = recorded_events(harness, 100).await.into_iter();
    events
        .map(|event| (event.organization, event.kind))
        .collect()
}

/// Stores a job whose trigger waits for executions of the job that clauses run.
async fn wait_for_ends<H: Runs>(harness: &H, organization: OrganizationId) {
    let source = harness.job(organization, "some job").await.id;
    let user = harness.user(organization, "somebody@example.org").await.id;
    let conditions = json!({ "source_job_id": source });
    let waiting = Job {
        version_number: Some(1),
        trigger: Some(given::trigger(Category::JobCompleted, conditions, user)),
        ..given::job("waiting", at(0))
    };
    let script = given::script(1, "pass\n", user);
    let jobs = Subject::<dyn JobRepository>::subject(harness);
    jobs.add(organization, &waiting, &script).await.unwrap();
}

/// Every end of a run, and of an execution elsewhere, is one event, recorded at the time of the
/// end. A run that returns to the queue has not ended.
pub async fn every_end_is_recorded_once<H: Runs + Executions>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    wait_for_ends(harness, lab).await;
    let queue = harness.queue();
    let executions = harness.executions();
    let ended = |id: ExecutionId| vec![(lab, EventKind::JobCompleted(id))];

    let run = claimed(harness, lab, at(0)).await.claim;
    queue.expire(at(0) + LEASE, 10).await.unwrap();
    let again = claim(harness, at(30), 1).await.remove(0).claim;
    queue.release(again, at(31)).await.unwrap();
    assert_eq!(reported(harness).await, []);
    claim(harness, at(40), 1).await;
    queue.expire(at(40) + LEASE, 10).await.unwrap();
    assert_eq!(reported(harness).await, ended(run.execution));

    let run = claimed(harness, lab, at(0)).await.claim;
    for _ in 0..2 {
        queue.finish(run, &completed(), at(5)).await.unwrap();
    }
    let event = recorded_events(harness, 100).await.remove(0);
    let expected = (lab, EventKind::JobCompleted(run.execution), at(5));
    assert_eq!((event.organization, event.kind, event.created_at), expected);

    let waiting = queued(harness, lab, at(0)).await.id;
    for _ in 0..2 {
        queue.cancel(lab, waiting, at(5)).await.ok();
    }
    assert_eq!(reported(harness).await, ended(waiting));

    let elsewhere = harness.execution(lab, at(0), None).await.id;
    for _ in 0..2 {
        let status = FinalStatus::Completed;
        executions
            .close(lab, elsewhere, status, at(5))
            .await
            .unwrap();
    }
    assert_eq!(reported(harness).await, ended(elsewhere));

    let cancelled = harness.execution(lab, at(0), None).await.id;
    queue.cancel(lab, cancelled, at(5)).await.unwrap();
    assert_eq!(reported(harness).await, ended(cancelled));

    let overdue = harness.execution(lab, at(0), Some(1)).await.id;
    executions.fail_overdue(at(60), 10).await.unwrap();
    assert_eq!(reported(harness).await, ended(overdue));
}

/// The end of an execution that no trigger of its organization waits for is no event, even if a
/// trigger is set later or another organization's waits.
pub async fn an_end_that_no_trigger_waits_for_is_no_event<H: Runs + Executions>(harness: &H) {
    let (lab, theirs) = harness.two_organizations().await;
    wait_for_ends(harness, theirs).await;
    let (queue, executions) = (harness.queue(), harness.executions());
    let run = claimed(harness, lab, at(0)).await.claim;
    queue.finish(run, &completed(), at(5)).await.unwrap();
    let waiting = queued(harness, lab, at(0)).await.id;
    queue.cancel(lab, waiting, at(5)).await.unwrap();
    let elsewhere = harness.execution(lab, at(0), None).await.id;
    let closed = executions.close(lab, elsewhere, FinalStatus::Failed, at(5));
    closed.await.unwrap();
    harness.execution(lab, at(0), Some(1)).await;
    executions.fail_overdue(at(60), 10).await.unwrap();
    wait_for_ends(harness, lab).await;
    assert_eq!(reported(harness).await, []);
}
