//! Contract of [`ExecutionRepository`](labdata_ports::executions::ExecutionRepository): ending executions.

use futures::future::join_all;
use labdata_domain::executions::{
    AgentEnd, CloseError, Execution, ExecutionState, FinalStatus, TIMED_OUT,
};
use labdata_ports::{PortError, executions::CloseExecutionError};

use crate::{
    executions::ExecutionsLab,
    given::{self, at},
};

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

crate::suite!(
    use executions::ends as execution_ends;

    /// Closing returns the closed execution, and a read returns the same.
    async fn closing_stores_the_final_state(lab: &ExecutionsLab) {
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
            let running = lab.execution(lab.ours, at(0), Some(2)).await;
            let closed = lab.close(&running, status, 60).await.unwrap();
            assert_eq!(closed, Execution { state, ..running });
            assert_eq!(lab.get(&closed).await, closed);
        }
    }

    /// Closing with the same status again responds as before, with the time of the first.
    async fn the_same_final_status_again_changes_nothing(lab: &ExecutionsLab) {
        for status in [FinalStatus::Completed, FinalStatus::Failed] {
            let running = lab.execution(lab.ours, at(0), None).await;
            let closed = lab.close(&running, status, 60).await.unwrap();
            let again = lab.close(&running, status, 120).await.unwrap();
            assert_eq!(again, closed);
            assert_eq!(lab.get(&closed).await, closed);
        }
    }

    /// A final status is final: another one is refused and changes nothing.
    async fn another_final_status_is_refused(lab: &ExecutionsLab) {
        for (first, name, second) in [
            (FinalStatus::Completed, "completed", FinalStatus::Failed),
            (FinalStatus::Failed, "failed", FinalStatus::Completed),
        ] {
            let running = lab.execution(lab.ours, at(0), None).await;
            let closed = lab.close(&running, first, 60).await.unwrap();
            assert_refused(lab.close(&running, second, 61).await, name);
            assert_eq!(lab.get(&closed).await, closed);
        }
    }

    /// The execution of an agent ends with the agent, not by a request, and a failure says why.
    async fn the_execution_of_an_agent_ends_with_its_agent(lab: &ExecutionsLab) {
        let job = lab.job(lab.ours, "agent").await;
        let failed = AgentEnd::Failed("the provider broke off".to_owned());
        for (end, state) in [
            (
                AgentEnd::Completed,
                ExecutionState::Completed { at: at(60) },
            ),
            (
                failed,
                ExecutionState::Failed {
                    at: at(60),
                    error: Some("the provider broke off".to_owned()),
                },
            ),
        ] {
            let running = given::execution(&job, at(0), Some(2)).of_agent();
            lab.add(&running).await.unwrap();
            match lab.close(&running, FinalStatus::Completed, 30).await {
                Err(CloseExecutionError::Refused(CloseError::OfAgent)) => {}
                other => panic!("expected a refusal, got {other:?}"),
            }
            let executions = &lab.executions;
            let ended = executions.end_agent(lab.ours, running.id, &end, at(60));
            assert_eq!(
                ended.await.unwrap(),
                Execution {
                    state,
                    ..running.clone()
                }
            );
            let again = executions.end_agent(lab.ours, running.id, &end, at(90));
            assert_eq!(again.await.unwrap(), lab.get(&running).await);
        }
        let theirs = lab.execution(lab.theirs, at(0), None).await;
        let refused = lab
            .executions
            .end_agent(lab.ours, theirs.id, &AgentEnd::Completed, at(1));
        match refused.await {
            Err(CloseExecutionError::Port(PortError::NotFound(_))) => {}
            other => panic!("expected NotFound, got {other:?}"),
        }
    }

    /// From its deadline on an execution counts as failed, even before the sweeper has failed it.
    async fn past_its_deadline_it_cannot_be_completed(lab: &ExecutionsLab) {
        let late = lab.execution(lab.ours, at(0), Some(1)).await;
        let refused = lab.close(&late, FinalStatus::Completed, 60).await;
        assert_refused(refused, "failed");
        let failed = lab.close(&late, FinalStatus::Failed, 61).await.unwrap();
        assert!(
            matches!(failed.state, ExecutionState::Failed { .. }),
            "{failed:?}"
        );
        assert_eq!(lab.get(&late).await.state, failed.state);
        let in_time = lab.execution(lab.ours, at(0), Some(1)).await;
        lab.close(&in_time, FinalStatus::Completed, 59)
            .await
            .unwrap();
    }

    /// Another organization's execution cannot be closed: it is not found, and stays as it is.
    async fn only_its_own_organization_closes_an_execution(lab: &ExecutionsLab) {
        let execution = lab.execution(lab.theirs, at(0), None).await;
        match lab.close(&execution, FinalStatus::Completed, 1).await {
            Err(CloseExecutionError::Port(PortError::NotFound(_))) => {}
            other => panic!("expected NotFound, got {other:?}"),
        }
        assert_eq!(
            lab.executions.get(lab.theirs, execution.id).await.unwrap(),
            execution
        );
    }

    /// Of concurrent calls one status wins: calls with it succeed, the rest are refused.
    async fn of_racing_final_statuses_exactly_one_wins(lab: &ExecutionsLab) {
        for _ in 0..5 {
            let running = lab.execution(lab.ours, at(0), None).await;
            let calls = (1..=8).map(|second| {
                let status = if second % 2 == 0 {
                    FinalStatus::Completed
                } else {
                    FinalStatus::Failed
                };
                lab.close(&running, status, second)
            });
            let (won, lost): (Vec<_>, Vec<_>) =
                join_all(calls).await.into_iter().partition(Result::is_ok);
            let stored = lab.get(&running).await;
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
    async fn overdue_executions_of_every_organization_are_failed_once(lab: &ExecutionsLab) {
        let here = lab.execution(lab.ours, at(0), Some(1)).await;
        let there = lab.execution(lab.theirs, at(0), Some(2)).await;
        let overdue = lab.executions.fail_overdue(at(120), 100).await.unwrap();
        assert_eq!(overdue.len(), 2);
        let failed = ExecutionState::Failed {
            at: at(120),
            error: Some(TIMED_OUT.to_owned()),
        };
        assert_eq!(lab.get(&here).await.state, failed);
        assert_eq!(
            lab.executions
                .get(lab.theirs, there.id)
                .await
                .unwrap()
                .state,
            failed
        );
        for (organization, execution) in [(lab.ours, &here), (lab.theirs, &there)] {
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
        assert_eq!(lab.executions.fail_overdue(at(180), 100).await.unwrap(), []);
        assert_eq!(lab.get(&here).await.state, failed);
    }

    /// Executions that ended, that have no deadline, or whose deadline is to come are not touched.
    async fn executions_within_their_time_are_left_alone(lab: &ExecutionsLab) {
        let endless = lab.execution(lab.ours, at(0), None).await;
        let in_time = lab.execution(lab.ours, at(1), Some(1)).await;
        let ended = lab.execution(lab.ours, at(0), Some(1)).await;
        let ended = lab.close(&ended, FinalStatus::Completed, 30).await.unwrap();
        assert_eq!(lab.executions.fail_overdue(at(60), 100).await.unwrap(), []);
        for execution in [endless, in_time, ended] {
            assert_eq!(lab.get(&execution).await, execution);
        }
    }

    /// One call fails at most `limit` executions; further calls fail the rest.
    async fn at_most_the_limit_is_failed_at_once(lab: &ExecutionsLab) {
        for _ in 0..5 {
            lab.execution(lab.ours, at(0), Some(1)).await;
        }
        for expected in [2, 2, 1, 0] {
            let failed = lab.executions.fail_overdue(at(60), 2).await.unwrap();
            assert_eq!(failed.len(), expected);
        }
    }

    /// The counts of concurrent sweepers add up to the number of overdue executions.
    async fn racing_sweepers_fail_each_execution_once(lab: &ExecutionsLab) {
        for _ in 0..12 {
            lab.execution(lab.ours, at(0), Some(1)).await;
        }
        let mut total = 0;
        for round in 0.. {
            let calls = (0..4).map(|_| lab.executions.fail_overdue(at(60 + round), 5));
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
    async fn of_a_close_and_a_sweep_exactly_one_wins(lab: &ExecutionsLab) {
        for _ in 0..5 {
            let running = lab.execution(lab.ours, at(0), Some(1)).await;
            let (closed, swept) = futures::join!(
                lab.close(&running, FinalStatus::Completed, 59),
                lab.executions.fail_overdue(at(60), 100),
            );
            let stored = lab.get(&running).await.state;
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
);
