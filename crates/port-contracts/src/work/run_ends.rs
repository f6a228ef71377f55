//! Contract of [`WorkQueue`](labdata_ports::work::WorkQueue): consequences of the end of a run, and of the loss of its
//! worker.

use labdata_domain::{
    executions::{CancelError, Execution, ExecutionState, FinalStatus, Origin},
    ids::{ExecutionId, FileId, OrganizationId, TriggerId},
    jobs::Job,
    page::PageRequest,
    people::{ApiKey, scope::Scope},
    triggers::{Category, event::EventKind},
    work::{FreeSlots, NewRun, PlatformRun, WORKER_LOST},
};
use labdata_ports::{
    executions::{CancelExecutionError, ExecutionFilter},
    work::{Task, WorkClaim},
};
use serde_json::json;
use time::OffsetDateTime;

use crate::{
    given::{self, at},
    notifications::failures::deliver,
    triggers::recorded::recorded_events,
    work::{
        lab::{new_run, terms},
        run_lab::{RunsLab, completed, execution_of},
    },
};

/// A new key of the run, stored.
async fn issued(lab: &RunsLab, claim: WorkClaim) -> ApiKey {
    let user = lab.user(claim.organization, "somebody@example.org").await;
    let key = ApiKey {
        execution: claim.work.execution(),
        ..given::api_key(&user)
    };
    assert!(lab.run_keys.issue(claim, &key).await.unwrap());
    assert_eq!(revoked(lab, &key).await, None);
    key
}

async fn revoked(lab: &RunsLab, key: &ApiKey) -> Option<OffsetDateTime> {
    let found = lab.keys.find_by_prefix(&key.prefix).await.unwrap();
    found.unwrap().key.revoked_at
}

/// Subjects of the recorded events, which are handled.
async fn reported(lab: &RunsLab) -> Vec<(OrganizationId, EventKind)> {
    let events = recorded_events(&*lab.triggers, 100).await.into_iter();
    events
        .map(|event| (event.organization, event.kind))
        .collect()
}

/// Stores a job whose trigger waits for executions of the job that clauses run.
async fn wait_for_ends(lab: &RunsLab, organization: OrganizationId) {
    let source = lab.job(organization, "some job").await.id;
    let user = lab.somebody(organization).await;
    let conditions = json!({ "source_job_id": source });
    let waiting = Job {
        version_number: Some(1),
        trigger: Some(given::trigger(Category::JobCompleted, conditions, user)),
        ..given::job("waiting", at(0))
    };
    let script = given::script(1, "pass\n", user);
    let added = lab.jobs.add(organization, &waiting, &script);
    added.await.unwrap();
}

crate::suite!(
    use work::run_ends as ends_of_runs;

    /// A finish, a cancel, a release and a loss revoke the run's keys, and no other keys.
    async fn keys_die_with_the_hold_on_the_run(lab: &RunsLab) {
        let other = lab.claimed(lab.ours, at(0)).await.claim;
        let others = issued(lab, other).await;

        let run = lab.claimed(lab.ours, at(0)).await.claim;
        let keys = [issued(lab, run).await, issued(lab, run).await];
        lab.finish(run, &completed(), at(5)).await;
        for key in keys {
            assert_eq!(revoked(lab, &key).await, Some(at(5)));
        }

        let run = lab.claimed(lab.ours, at(0)).await.claim;
        let key = issued(lab, run).await;
        lab.cancel(execution_of(run), at(6)).await;
        assert_eq!(revoked(lab, &key).await, Some(at(6)));

        let run = lab.claimed(lab.ours, at(0)).await.claim;
        let key = issued(lab, run).await;
        lab.queue.release(run, at(7)).await.unwrap();
        assert_eq!(revoked(lab, &key).await, Some(at(7)));

        let run = lab.claim(at(0), 1).await.remove(0).claim;
        let key = issued(lab, run).await;
        lab.lose(run, at(20)).await;
        assert_eq!(revoked(lab, &key).await, Some(at(20)));
        assert_eq!(revoked(lab, &others).await, None);
    }

    /// Every end of a run, and of an execution elsewhere, is one event, recorded at the time of the
    /// end. A run that returns to the queue has not ended, and of a run and its retry the end of the retry
    /// counts.
    async fn every_end_is_recorded_once(lab: &RunsLab) {
        wait_for_ends(lab, lab.ours).await;
        let executions = &lab.executions;
        let ended = |id: ExecutionId| vec![(lab.ours, EventKind::JobCompleted(id))];

        let run = lab.claimed(lab.ours, at(0)).await.claim;
        lab.lose(run, at(20)).await;
        let again = lab.claim(at(30), 1).await.remove(0).claim;
        lab.queue.release(again, at(31)).await.unwrap();
        assert_eq!(reported(lab).await, []);
        let last = lab.claim(at(40), 1).await.remove(0).claim;
        lab.lose(last, at(60)).await;
        assert_eq!(reported(lab).await, ended(execution_of(last)));

        let run = lab.claimed(lab.ours, at(0)).await.claim;
        for _ in 0..2 {
            lab.finish(run, &completed(), at(5)).await;
        }
        let event = recorded_events(&*lab.triggers, 100).await.remove(0);
        let expected = (lab.ours, EventKind::JobCompleted(execution_of(run)), at(5));
        assert_eq!((event.organization, event.kind, event.created_at), expected);

        let waiting = lab.queued(lab.ours, at(0)).await.id;
        for _ in 0..2 {
            executions.cancel(lab.ours, waiting, at(5)).await.ok();
        }
        assert_eq!(reported(lab).await, ended(waiting));

        let elsewhere = lab.execution(lab.ours, at(0), None).await.id;
        for _ in 0..2 {
            let status = FinalStatus::Completed;
            executions
                .close(lab.ours, elsewhere, status, at(5))
                .await
                .unwrap();
        }
        assert_eq!(reported(lab).await, ended(elsewhere));

        let cancelled = lab.execution(lab.ours, at(0), None).await.id;
        lab.cancel(cancelled, at(5)).await;
        assert_eq!(reported(lab).await, ended(cancelled));

        let overdue = lab.execution(lab.ours, at(0), Some(1)).await.id;
        executions.fail_overdue(at(60), 10).await.unwrap();
        assert_eq!(reported(lab).await, ended(overdue));
    }

    /// The end of an execution that no trigger of its organization waits for is no event, even if a
    /// trigger is set later or another organization's waits.
    async fn an_end_that_no_trigger_waits_for_is_no_event(lab: &RunsLab) {
        wait_for_ends(lab, lab.theirs).await;
        let executions = &lab.executions;
        let run = lab.claimed(lab.ours, at(0)).await.claim;
        lab.finish(run, &completed(), at(5)).await;
        let waiting = lab.queued(lab.ours, at(0)).await.id;
        lab.cancel(waiting, at(5)).await;
        let elsewhere = lab.execution(lab.ours, at(0), None).await.id;
        let closed = executions.close(lab.ours, elsewhere, FinalStatus::Failed, at(5));
        closed.await.unwrap();
        lab.execution(lab.ours, at(0), Some(1)).await;
        executions.fail_overdue(at(60), 10).await.unwrap();
        wait_for_ends(lab, lab.ours).await;
        assert_eq!(reported(lab).await, []);
    }

    /// A lost worker issues no key, neither while the run is queued again nor while another worker has it.
    async fn a_lost_worker_issues_no_key(lab: &RunsLab) {
        let lost = lab.claimed(lab.ours, at(0)).await.claim;
        lab.lose(lost, at(20)).await;
        for running_again in [false, true] {
            if running_again {
                assert_eq!(lab.claim(at(30), 1).await.len(), 1);
            }
            let key = given::api_key(&lab.ada);
            assert!(!lab.run_keys.issue(lost, &key).await.unwrap());
            let keys = &lab.keys;
            assert!(keys.find_by_prefix(&key.prefix).await.unwrap().is_none());
        }
    }

    /// The failed run and its retry name each other, and the retry is otherwise the same run: its file, parameters,
    /// starter, scopes and source.
    async fn a_run_that_lost_its_worker_is_retried_by_another_execution(lab: &RunsLab) {
        let job = lab.job(lab.ours, "some job").await.id;
        let run = NewRun {
            trigger_file: Some(FileId::new(given::uuid())),
            parameters: json!({"threshold": 0.5}).as_object().unwrap().clone(),
            source: Some(lab.execution(lab.ours, at(0), None).await.id),
            api_key: Some(given::api_key(&lab.ada).id),
            trigger: Some(TriggerId::new(given::uuid())),
            scopes: [Scope::Write].into_iter().collect(),
            ..new_run(job, lab.ada.id, at(0))
        };
        let queued = lab.executions.queue(lab.ours, &run).await.unwrap();
        let first = lab.claim(at(1), 1).await.remove(0).claim;
        lab.lose(first, at(20)).await;

        let failed = lab.stored(first).await;
        let retry = failed.retried_by().unwrap();
        let origin = queued.origin.run().unwrap().clone();
        let error = Some(WORKER_LOST.to_owned());
        let expected = Execution {
            origin: Origin::Platform(PlatformRun {
                retried_by: Some(retry),
                ..origin.clone()
            }),
            state: ExecutionState::Failed { at: at(20), error },
            started_at: Some(at(1)),
            ..queued.clone()
        };
        assert_eq!(failed, expected);
        let expected = Execution {
            id: retry,
            origin: Origin::Platform(PlatformRun {
                retry_of: Some(run.id),
                ..origin
            }),
            created_at: at(20),
            ..queued
        };
        assert_eq!(lab.executions.get(lab.ours, retry).await.unwrap(), expected);
        let starters = lab.executions.starters(lab.ours, &[run.id, retry]).await;
        let starters = starters.unwrap();
        assert_eq!(starters[&retry], starters[&run.id]);

        let kind = first.work.kind();
        let slots = FreeSlots::for_any(1);
        let claimed = lab.queue.claim(kind, slots, terms(at(30))).await.unwrap();
        let Task::Run(claimed) = &claimed[0].task else {
            panic!("{claimed:?} is no run");
        };
        assert_eq!(
            (claimed.execution.id, claimed.started_by, claimed.trigger),
            (retry, run.started_by, run.trigger)
        );
        assert_eq!(claimed.scopes, run.scopes);
    }

    /// The retry has the place of the lost run in the queue, and is the newest of the runs of its file.
    async fn a_retry_does_not_wait_behind_later_runs(lab: &RunsLab) {
        let file = Some(FileId::new(given::uuid()));
        let job = lab.job(lab.ours, "some job").await.id;
        let user = lab.somebody(lab.ours).await;
        let run = NewRun {
            trigger_file: file,
            ..new_run(job, user, at(0))
        };
        lab.executions.queue(lab.ours, &run).await.unwrap();
        let lost = lab.claim(at(1), 1).await.remove(0).claim;
        lab.queued(lab.ours, at(2)).await;
        lab.lose(lost, at(20)).await;
        let retry = lab.claim(at(30), 1).await.remove(0).execution;
        assert_eq!(retry.retry_of(), Some(run.id));
        let filter = ExecutionFilter {
            trigger_file: file,
            ..ExecutionFilter::default()
        };
        let page = PageRequest {
            limit: Some(10),
            after: None,
        };
        let listed = lab.executions.list(lab.ours, &filter, page).await.unwrap();
        let ids: Vec<ExecutionId> = listed.items.iter().map(|it| it.id).collect();
        assert_eq!(ids, [retry.id, run.id]);
    }

    /// Cancelling a run that is retried is refused, with the id of the retry.
    async fn of_a_retried_run_the_retry_is_cancelled(lab: &RunsLab) {
        let run = lab.claimed(lab.ours, at(0)).await.claim;
        lab.lose(run, at(20)).await;
        let retry = lab.stored(run).await.retried_by().unwrap();
        let id = execution_of(run);
        match lab.executions.cancel(lab.ours, id, at(21)).await {
            Err(CancelExecutionError::Refused(refused)) => {
                assert_eq!(refused, CancelError::Retried(retry));
            }
            other => panic!("{other:?}"),
        }
        let cancelled = lab.cancel(retry, at(22)).await;
        assert_eq!(cancelled.retry_of(), Some(id));
        assert_eq!(lab.claim(at(30), 1).await, []);
    }

    /// A run that is retried has no notice; if its retry fails, that has one.
    async fn of_a_run_and_its_retry_the_last_failure_has_a_notice(lab: &RunsLab) {
        let notifications = &*lab.notifications;
        let run = lab.claimed(lab.ours, at(0)).await.claim;
        lab.lose(run, at(20)).await;
        assert_eq!(deliver(notifications, 10, at(21)).await, 0);
        let retry = lab.claim(at(30), 1).await.remove(0).claim;
        lab.lose(retry, at(50)).await;
        assert_eq!(deliver(notifications, 10, at(51)).await, 1);
    }
);
