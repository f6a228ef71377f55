//! What [`ExecutionRepository`] promises.

use futures::future::join_all;
use labdata_domain::{
    execution::{CloseError, Execution, ExecutionState, FinalStatus, Origin, TIMED_OUT},
    ids::{ExecutionId, OrganizationId},
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository},
};

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::{Executions, Jobs},
    given::{self, at},
    paging::{ALL, read_to_the_end},
};

/// Makes one test of each clause of [`crate::executions`].
#[macro_export]
macro_rules! executions_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, executions:
            an_execution_reads_back_as_it_was_added,
            an_execution_needs_a_job_of_its_organization,
            an_unknown_execution_is_not_found,
            an_execution_of_another_organization_is_not_found,
            the_list_is_newest_first_and_total,
            pages_lose_and_repeat_nothing_while_others_insert,
            the_list_is_filtered_by_job_and_status,
            the_list_shows_no_other_organization,
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

/// The filter that leaves out nothing.
const ANY: ExecutionFilter = ExecutionFilter {
    job: None,
    status: None,
};

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

/// Adds executions that started at these seconds, and returns them newest first.
async fn stored<H: Executions>(
    harness: &H,
    organization: OrganizationId,
    seconds: &[i64],
) -> Vec<Execution> {
    let mut added = Vec::new();
    for seconds in seconds {
        added.push(harness.execution(organization, at(*seconds), None).await);
    }
    added.sort_by_key(|execution| std::cmp::Reverse((execution.created_at, execution.id)));
    added
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

/// Every field is kept, in every state and of every origin, times to the microsecond.
pub async fn an_execution_reads_back_as_it_was_added<H>(harness: &H)
where
    H: Jobs + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let job = harness.job(lab, "parse \"Gen5\"").await;
    let executions = harness.subject();
    let states = [
        ExecutionState::Running { deadline: None },
        ExecutionState::Running {
            deadline: Some(at(3600)),
        },
        ExecutionState::Completed { at: at(9) },
        ExecutionState::Failed {
            at: at(9),
            error: None,
        },
        ExecutionState::Failed {
            at: at(9),
            error: Some("ImportError: \"numpy\"".to_owned()),
        },
    ];
    for state in states {
        for origin in [Origin::OffPlatform, Origin::DataWrite] {
            let given = given::execution(&job, at(0), None);
            let execution = Execution {
                state: state.clone(),
                origin,
                ..given
            };
            executions.add(lab, &execution, user).await.unwrap();
            assert_eq!(executions.get(lab, execution.id).await.unwrap(), execution);
        }
    }
    let waiting = Execution {
        started_at: None,
        ..given::execution(&job, at(0), None)
    };
    executions.add(lab, &waiting, user).await.unwrap();
    assert_eq!(executions.get(lab, waiting.id).await.unwrap(), waiting);
}

/// A job that is unknown or another organization's is not found, and nothing is stored.
pub async fn an_execution_needs_a_job_of_its_organization<H>(harness: &H)
where
    H: Jobs + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let user = harness.user(ours, "ada@example.org").await.id;
    let unknown = given::job("parse", at(0));
    let foreign = harness.job(theirs, "parse").await;
    let executions = harness.subject();
    for job in [unknown, foreign] {
        let execution = given::execution(&job, at(0), None);
        assert_not_found(executions.add(ours, &execution, user).await);
        assert_not_found(executions.get(ours, execution.id).await);
    }
    assert_eq!(executions.list(ours, &ANY, ALL).await.unwrap().items, []);
    assert_eq!(executions.list(theirs, &ANY, ALL).await.unwrap().items, []);
}

/// An id that no execution has is not found, whether it is read or closed.
pub async fn an_unknown_execution_is_not_found<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let unknown = ExecutionId::new(given::uuid());
    let executions = harness.subject();
    assert_not_found(executions.get(lab, unknown).await);
    match executions
        .close(lab, unknown, FinalStatus::Failed, at(0))
        .await
    {
        Err(CloseExecutionError::Port(error)) => assert_not_found::<()>(Err(error)),
        other => panic!("expected NotFound, got {other:?}"),
    }
}

/// Another organization's execution is answered like one that does not exist.
pub async fn an_execution_of_another_organization_is_not_found<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let execution = harness.execution(theirs, at(0), None).await;
    assert_not_found(harness.subject().get(ours, execution.id).await);
}

/// The list is ordered by time of creation, then id, newest first, however it is cut into pages.
pub async fn the_list_is_newest_first_and_total<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let expected = stored(harness, lab, &[20, 10, 30, 10, 20, 10, 10]).await;
    let executions = harness.subject();
    let all = executions.list(lab, &ANY, ALL).await.unwrap();
    assert_eq!((all.items, all.next), (expected.clone(), None));
    for limit in [1, 2, 7, 100] {
        let items = read_to_the_end(limit, async |_, page| {
            executions.list(lab, &ANY, page).await
        })
        .await;
        assert_eq!(items, expected, "in pages of {limit}");
    }
}

/// What was there when reading began is read exactly once, while newer ones are added.
pub async fn pages_lose_and_repeat_nothing_while_others_insert<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let expected = stored(harness, lab, &[1, 2, 2, 2, 3, 4, 5]).await;
    let executions = harness.subject();
    let items = read_to_the_end(2, async |_, request| {
        let page = executions.list(lab, &ANY, request).await?;
        stored(harness, lab, &[60]).await;
        Ok(page)
    })
    .await;
    assert_eq!(items, expected);
}

/// The filters hold together, also across pages.
pub async fn the_list_is_filtered_by_job_and_status<H>(harness: &H)
where
    H: Jobs + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await.id;
    let parse = harness.job(lab, "parse").await;
    let plot = harness.job(lab, "plot").await;
    let unused = harness.job(lab, "unused").await;
    let executions = harness.subject();
    let mut added = Vec::new();
    for (job, second) in [
        (&parse, 1),
        (&plot, 2),
        (&parse, 3),
        (&plot, 4),
        (&parse, 5),
    ] {
        let execution = given::execution(job, at(second), None);
        executions.add(lab, &execution, user).await.unwrap();
        added.push(execution);
    }
    for execution in added.iter_mut().take(3) {
        *execution = executions
            .close(lab, execution.id, FinalStatus::Completed, at(9))
            .await
            .unwrap();
    }
    added.reverse();
    for job in [None, Some(parse.id), Some(plot.id), Some(unused.id)] {
        for status in [None, Some("running"), Some("completed"), Some("failed")] {
            let filter = ExecutionFilter {
                job,
                status: status.map(str::to_owned),
            };
            let expected: Vec<Execution> = added
                .iter()
                .filter(|execution| job.is_none_or(|job| execution.job_id == job))
                .filter(|execution| status.is_none_or(|status| execution.state.as_str() == status))
                .cloned()
                .collect();
            let items =
                read_to_the_end(1, async |_, page| executions.list(lab, &filter, page).await).await;
            assert_eq!(items, expected, "{filter:?}");
        }
    }
}

/// An organization's list holds none of another's executions, not even when asked for its job.
pub async fn the_list_shows_no_other_organization<H>(harness: &H)
where
    H: Executions + Subject<dyn ExecutionRepository>,
{
    let (ours, theirs) = harness.two_organizations().await;
    let expected = stored(harness, ours, &[1, 3, 5]).await;
    let foreign = harness.execution(theirs, at(2), None).await;
    let executions = harness.subject();
    let items = read_to_the_end(1, async |_, page| executions.list(ours, &ANY, page).await).await;
    assert_eq!(items, expected);
    let filter = ExecutionFilter {
        job: Some(foreign.job_id),
        status: None,
    };
    assert_eq!(executions.list(ours, &filter, ALL).await.unwrap().items, []);
}

/// The answer is the closed execution, and it reads back so.
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

/// From its deadline on it counts as failed, even though no sweeper has come by.
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

/// Of racing calls one status wins: calls with it succeed alike, the others are refused.
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
        let kept = executions.get(lab, running.id).await.unwrap();
        assert_eq!((won.len(), lost.len()), (4, 4));
        for result in won {
            assert_eq!(result.unwrap(), kept);
        }
        for result in lost {
            assert_refused(result, kept.state.as_str());
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
    assert_eq!(executions.fail_overdue(at(120), 100).await.unwrap(), 2);
    let failed = ExecutionState::Failed {
        at: at(120),
        error: Some(TIMED_OUT.to_owned()),
    };
    assert_eq!(state(&*executions, ours, &here).await, failed);
    assert_eq!(state(&*executions, theirs, &there).await, failed);
    assert_eq!(executions.fail_overdue(at(180), 100).await.unwrap(), 0);
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
    assert_eq!(executions.fail_overdue(at(60), 100).await.unwrap(), 0);
    for execution in [endless, in_time, ended] {
        assert_eq!(executions.get(lab, execution.id).await.unwrap(), execution);
    }
}

/// One call fails no more than it is told; further calls do the rest.
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
        assert_eq!(executions.fail_overdue(at(60), 2).await.unwrap(), expected);
    }
}

/// However many servers sweep at once, their counts add up to the overdue executions.
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
        let counts: u64 = join_all(calls).await.into_iter().map(Result::unwrap).sum();
        total += counts;
        if counts == 0 {
            break;
        }
    }
    assert_eq!(total, 12);
}

/// Of a script that closes in time and a sweeper that comes by, one wins and both know it.
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
        let kept = state(&*executions, lab, &running).await;
        if let Ok(closed) = closed {
            // A sweeper may have met the row while it was being closed, but then it has failed
            // nothing.
            assert_eq!((kept, swept.unwrap()), (closed.state, 0));
        } else {
            assert_refused(closed, "failed");
            assert_eq!((kept.as_str(), swept.unwrap()), ("failed", 1));
        }
    }
}
