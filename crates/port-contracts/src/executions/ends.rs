//! Contract of [`ExecutionRepository`]: ending executions.

use futures::future::join_all;
use labdata_domain::{
    executions::{CloseError, Execution, ExecutionState, FinalStatus, TIMED_OUT},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionRepository},
};

use crate::{Subject, fixtures::Executions, given::at};

/// Makes one test of each clause of [`crate::executions::ends`].
#[macro_export]
macro_rules! execution_ends_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, execution_ends in executions::ends:
            closing_stores_the_final_state,
            the_same_final_status_again_changes_nothing,
            another_final_status_is_refused,
            past_its_deadline_it_cannot_be_completed,
            only_its_own_organization_closes_an_execution,
            of_racing_final_statuses_exactly_one_wins,
            overdue_executions_of_every_organization_are_failed_once,
            executions_within_their_time_are_left_alone,
            at_most_the_limit_is_failed_at_once,
            racing_sweepers_fail_each_execution_once,
            of_a_close_and_a_sweep_exactly_one_wins,
        }
    };
}

/// The stored state of an execution.
async fn state(
    executions: &dyn ExecutionRepository,
    organization: OrganizationId,
    execution: &Execution,
) -> ExecutionState {
    executions
        .get(organization, execution.id)
        .await
        .unwrap()
        .state
}

/// Fails unless closing was refused because of that state.
#[track_caller]
fn assert_refused(result: Result<Execution, CloseExecutionError>, state: &'static str) {
    match result {
        Err(CloseExecutionError::Refused(CloseError::EndedOtherwise(found))) => {
            assert_eq!(found, state);
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Closing returns the closed execution, and a read returns the same.
pub async fn closing_stores_the_final_state<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    for (status, state) in [
        (
            FinalStatus::Completed,
            ExecutionState::Completed { at: at(60) },
        ),
        (
            FinalStatus::Failed,
            ExecutionState::Failed {
                at: at(60),
                error: None,
            },
        ),
    ] {
        let running = harness.execution(lab, at(0), Some(2)).await;
        let closed = executions
            .close(lab, running.id, status, at(60))
            .await
            .unwrap();
        assert_eq!(closed, Execution { state, ..running });
        assert_eq!(executions.get(lab, closed.id).await.unwrap(), closed);
    }
}

/// Closing with the same status again answers as before, with the time of the first.
pub async fn the_same_final_status_again_changes_nothing<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    for status in [FinalStatus::Completed, FinalStatus::Failed] {
        let running = harness.execution(lab, at(0), None).await;
        let closed = executions
            .close(lab, running.id, status, at(60))
            .await
            .unwrap();
        let again = executions
            .close(lab, running.id, status, at(120))
            .await
            .unwrap();
        assert_eq!(again, closed);
        assert_eq!(executions.get(lab, closed.id).await.unwrap(), closed);
    }
}

/// A final status is final: another one is refused and changes nothing.
pub async fn another_final_status_is_refused<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    for (first, name, second) in [
        (FinalStatus::Completed, "completed", FinalStatus::Failed),
        (FinalStatus::Failed, "failed", FinalStatus::Completed),
    ] {
        let running = harness.execution(lab, at(0), None).await;
        let closed = executions
            .close(lab, running.id, first, at(60))
            .await
            .unwrap();
        assert_refused(
            executions.close(lab, running.id, second, at(61)).await,
            name,
        );
        assert_eq!(executions.get(lab, closed.id).await.unwrap(), closed);
    }
}

/// From its deadline on an execution counts as failed, even before the sweeper has failed it.
pub async fn past_its_deadline_it_cannot_be_completed<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    let late = harness.execution(lab, at(0), Some(1)).await;
    let refused = executions
        .close(lab, late.id, FinalStatus::Completed, at(60))
        .await;
    assert_refused(refused, "failed");
    let failed = executions
        .close(lab, late.id, FinalStatus::Failed, at(61))
        .await
        .unwrap();
    assert!(
        matches!(failed.state, ExecutionState::Failed { .. }),
        "{failed:?}"
    );
    assert_eq!(state(&*executions, lab, &late).await, failed.state);
    let in_time = harness.execution(lab, at(0), Some(1)).await;
    executions
        .close(lab, in_time.id, FinalStatus::Completed, at(59))
        .await
        .unwrap();
}

/// Another organization's execution cannot be closed: it is not found, and stays as it is.
pub async fn only_its_own_organization_closes_an_execution<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let execution = harness.execution(theirs, at(0), None).await;
    let executions = harness.subject();
    match executions
        .close(ours, execution.id, FinalStatus::Completed, at(1))
        .await
    {
        Err(CloseExecutionError::Port(PortError::NotFound(_))) => {}
        other => panic!("expected NotFound, got {other:?}"),
    }
    assert_eq!(
        executions.get(theirs, execution.id).await.unwrap(),
        execution
    );
}

/// Of concurrent calls one status wins: calls with it succeed, the rest are refused.
pub async fn of_racing_final_statuses_exactly_one_wins<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    for _ in 0..5 {
        let running = harness.execution(lab, at(0), None).await;
        let calls = (1..=8).map(|second| {
            let status = if second % 2 == 0 {
                FinalStatus::Completed
            } else {
                FinalStatus::Failed
            };
            executions.close(lab, running.id, status, at(second))
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            join_all(calls).await.into_iter().partition(Result::is_ok);
        let stored = executions.get(lab, running.id).await.unwrap();
        assert_eq!((won.len(), lost.len()), (4, 4));
        for result in won {
            assert_eq!(result.unwrap(), stored);
        }
        for result in lost {
            assert_refused(result, stored.state.as_str());
        }
    }
}

/// Overdue executions are failed at that time with the platform's message, and only once.
pub async fn overdue_executions_of_every_organization_are_failed_once<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let here = harness.execution(ours, at(0), Some(1)).await;
    let there = harness.execution(theirs, at(0), Some(2)).await;
    let executions = harness.subject();
    let overdue = executions.fail_overdue(at(120), 100).await.unwrap();
    assert_eq!(overdue.len(), 2);
    let failed = ExecutionState::Failed {
        at: at(120),
        error: Some(TIMED_OUT.to_owned()),
    };
    assert_eq!(state(&*executions, ours, &here).await, failed);
    assert_eq!(state(&*executions, theirs, &there).await, failed);
    for (organization, execution) in [(ours, &here), (theirs, &there)] {
        let reported = overdue
            .iter()
            .find(|reported| reported.execution.id == execution.id)
            .unwrap();
        assert_eq!(reported.organization, organization);
        let expected = Execution {
            state: failed.clone(),
            ..execution.clone()
        };
        assert_eq!(reported.execution, expected);
    }
    assert_eq!(executions.fail_overdue(at(180), 100).await.unwrap(), []);
    assert_eq!(state(&*executions, ours, &here).await, failed);
}

/// Executions that ended, that have no deadline, or whose deadline is to come are not touched.
pub async fn executions_within_their_time_are_left_alone<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    let endless = harness.execution(lab, at(0), None).await;
    let in_time = harness.execution(lab, at(1), Some(1)).await;
    let ended = harness.execution(lab, at(0), Some(1)).await;
    let ended = executions
        .close(lab, ended.id, FinalStatus::Completed, at(30))
        .await
        .unwrap();
    assert_eq!(executions.fail_overdue(at(60), 100).await.unwrap(), []);
    for execution in [endless, in_time, ended] {
        assert_eq!(executions.get(lab, execution.id).await.unwrap(), execution);
    }
}

/// One call fails at most `limit` executions; further calls fail the rest.
pub async fn at_most_the_limit_is_failed_at_once<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    for _ in 0..5 {
        harness.execution(lab, at(0), Some(1)).await;
    }
    let executions = harness.subject();
    for expected in [2, 2, 1, 0] {
        let failed = executions.fail_overdue(at(60), 2).await.unwrap();
        assert_eq!(failed.len(), expected);
    }
}

/// The counts of concurrent sweepers add up to the number of overdue executions.
pub async fn racing_sweepers_fail_each_execution_once<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    for _ in 0..12 {
        harness.execution(lab, at(0), Some(1)).await;
    }
    let executions = harness.subject();
    let mut total = 0;
    for round in 0.. {
        let calls = (0..4).map(|_| executions.fail_overdue(at(60 + round), 5));
        let failed = join_all(calls)
            .await
            .into_iter()
            .map(|failed| failed.unwrap().len());
        let count: usize = failed.sum();
        total += count;
        if count == 0 {
            break;
        }
    }
    assert_eq!(total, 12);
}

/// If a script closes its execution while a sweeper fails it, one wins and both learn the result.
pub async fn of_a_close_and_a_sweep_exactly_one_wins<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let executions = harness.subject();
    for _ in 0..5 {
        let running = harness.execution(lab, at(0), Some(1)).await;
        let (closed, swept) = futures::join!(
            executions.close(lab, running.id, FinalStatus::Completed, at(59)),
            executions.fail_overdue(at(60), 100),
        );
        let stored = state(&*executions, lab, &running).await;
        if let Ok(closed) = closed {
            // The sweeper may have read the row while it was being closed, but then it failed
            // nothing.
            assert_eq!((stored, swept.unwrap().len()), (closed.state, 0));
        } else {
            assert_refused(closed, "failed");
            assert_eq!((stored.as_str(), swept.unwrap().len()), ("failed", 1));
        }
    }
}
