//! Contract of [`ExecutionRepository`] and [`RunKeys`](labdata_ports::work::RunKeys): runs of jobs, and what differs from other work.

use labdata_domain::{
    executions::{CancelError, CloseError, Execution, ExecutionState, FinalStatus, Origin},
    ids::{ExecutionId, FileId, TriggerId},
    jobs::Job,
    page::PageRequest,
    people::{
        author::{Author, NamedUser},
        scope::Scope,
    },
    work::{FreeSlots, NewRun, PlatformRun, RunEnd, WorkKind},
};
use labdata_ports::{
    data::WriteError,
    executions::{CancelExecutionError, CloseExecutionError, ExecutionFilter, ExecutionRepository},
    work::{Task, WorkQueue},
};
use serde_json::json;
use time::Duration;

use crate::{
    Itself, Subject,
    assertions::assert_not_found,
    data::lab::{DataHarness, Lab, insert, request},
    fixtures::{Jobs, Tenants},
    given::{self, at},
    lab::Records,
    work::{
        lab::{TIMEOUT, new_run, terms},
        run_lab::{RunsLab, claim_from, completed, execution_of},
    },
};

crate::suite!(
    use work::runs as runs_of_jobs;

    /// A queued run has every field and the state `queued`.
    async fn a_queued_run_reads_back_as_it_was_requested(lab: &RunsLab) {
        let job = lab.job(lab.ours, "parse \"Gen5\"").await;
        let user = lab.ada.id;
        let source = lab.queued(lab.ours, at(0)).await.id;
        let parameters =
            json!({"threshold": 0.5, "wells": ["A1", "B2"], "who": null, "µ": "\"'\\"});
        let run = NewRun {
            trigger_file: Some(FileId::new(given::uuid())),
            parameters: parameters.as_object().unwrap().clone(),
            source: Some(source),
            ..new_run(job.id, user, at(1))
        };
        let expected = Execution {
            id: run.id,
            job_id: job.id,
            job_name: job.name,
            origin: Origin::Platform(PlatformRun {
                trigger_file: run.trigger_file,
                parameters: run.parameters.clone(),
                source: Some(source),
                ..PlatformRun::of_version(3)
            }),
            state: ExecutionState::Queued,
            created_at: at(1),
            started_at: None,
        };
        assert_eq!(
            lab.executions.queue(lab.ours, &run).await.unwrap(),
            expected
        );
        let executions = &lab.executions;
        assert_eq!(executions.get(lab.ours, run.id).await.unwrap(), expected);
    }

    /// The list of a file's runs holds no run of another file, none without one, and none of another organization.
    async fn the_runs_of_a_file_are_listed(lab: &RunsLab) {
        let [file, other] = [(); 2].map(|()| FileId::new(given::uuid()));
        let mut expected = Vec::new();
        for (organization, trigger_file) in [
            (lab.ours, Some(file)),
            (lab.ours, Some(other)),
            (lab.ours, None),
            (lab.theirs, Some(file)),
            (lab.ours, Some(file)),
        ] {
            let name = format!("parse {}", given::uuid());
            let job = lab.job(organization, &name).await.id;
            let user = lab.user(organization, &format!("{job}@example.org")).await;
            let run = NewRun {
                trigger_file,
                ..new_run(job, user.id, at(0))
            };
            lab.executions.queue(organization, &run).await.unwrap();
            if (organization, trigger_file) == (lab.ours, Some(file)) {
                expected.push(run.id);
            }
        }
        let filter = ExecutionFilter {
            trigger_file: Some(file),
            ..ExecutionFilter::default()
        };
        let page = PageRequest {
            limit: Some(10),
            after: None,
        };
        let executions = &lab.executions;
        let listed = executions.list(lab.ours, &filter, page).await.unwrap();
        let mut ids: Vec<ExecutionId> = listed.items.iter().map(|it| it.id).collect();
        ids.sort();
        expected.sort();
        assert_eq!(ids, expected);
    }

    /// A job or file of another organization is not found, and nothing is queued.
    async fn a_run_needs_a_job_a_user_and_a_source_of_its_organization(lab: &RunsLab) {
        let our_job = lab.job(lab.ours, "parse").await.id;
        let our_user = lab.ada.id;
        let their_job = lab.job(lab.theirs, "parse").await.id;
        let their_user = lab.user(lab.theirs, "bob@example.org").await.id;
        let their_run = new_run(their_job, their_user, at(0));
        let executions = &lab.executions;
        executions.queue(lab.theirs, &their_run).await.unwrap();
        for run in [
            new_run(their_job, our_user, at(0)),
            new_run(our_job, their_user, at(0)),
            NewRun {
                source: Some(their_run.id),
                ..new_run(our_job, our_user, at(0))
            },
        ] {
            assert_not_found(executions.queue(lab.ours, &run).await);
            assert_not_found(executions.get(lab.ours, run.id).await);
        }
        assert_eq!(lab.claim(at(1), 10).await.len(), 1);
    }

    /// The sweeper of off-platform executions does not fail a run; its worker does.
    async fn a_run_past_its_deadline_is_left_to_its_worker(lab: &RunsLab) {
        let claimed = lab.claimed(lab.ours, at(0)).await;
        let late = at(0) + TIMEOUT + Duration::hours(1);
        let executions = &lab.executions;
        assert_eq!(executions.fail_overdue(late, 10).await.unwrap(), []);
        let stored = executions
            .get(lab.ours, claimed.execution.id)
            .await
            .unwrap();
        assert_eq!(stored, claimed.execution);
    }

    /// A run on the platform cannot be closed in any state.
    async fn a_run_is_not_closed_from_outside(lab: &RunsLab) {
        let running = lab.claimed(lab.ours, at(0)).await.execution;
        let waiting = lab.queued(lab.ours, at(1)).await;
        let executions = &lab.executions;
        for run in [running, waiting] {
            for status in [FinalStatus::Completed, FinalStatus::Failed] {
                match executions.close(lab.ours, run.id, status, at(2)).await {
                    Err(CloseExecutionError::Refused(CloseError::RunsOnPlatform)) => {}
                    other => panic!("expected a refusal, got {other:?}"),
                }
            }
            assert_eq!(executions.get(lab.ours, run.id).await.unwrap(), run);
        }
    }

    /// A queued or ended run accepts no writes.
    async fn only_a_running_run_accepts_writes(
        harness: &Itself<impl DataHarness + Subject<dyn WorkQueue>>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let organization = lab.organization;
        let sample = |name: &str| request([insert("sample", json!([{ "name": name }]))], []);
        let job = harness.job(organization, "some job").await.id;
        let run = new_run(job, lab.user, at(0));
        let waiting = run.id;
        lab.executions.queue(organization, &run).await.unwrap();
        let refused = lab.write_under(waiting, sample("early")).await;
        assert!(
            matches!(&refused, Err(WriteError::ExecutionEnded(status)) if status == "queued"),
            "{refused:?}"
        );
        assert_eq!(lab.count("sample").await, 0);
        let queue = Subject::<dyn WorkQueue>::subject(harness);
        claim_from(&*queue, at(0), 1).await;
        let outcome = lab.write_under(waiting, sample("in time")).await.unwrap();
        assert_eq!(outcome.execution, Some(waiting));
        let still = lab.execution(waiting).await;
        assert_eq!(still.state.as_str(), "running");
        lab.executions
            .cancel(organization, waiting, at(1))
            .await
            .unwrap();
        let refused = lab.write_under(waiting, sample("late")).await;
        assert!(
            matches!(&refused, Err(WriteError::ExecutionEnded(status)) if status == "cancelled"),
            "{refused:?}"
        );
    }

    /// An end sets state, time, error and exit code, and returns what a read returns.
    async fn finishing_stores_how_the_run_ended(lab: &RunsLab) {
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
            let run = lab.claimed(lab.ours, at(0)).await;
            let ended = lab.finish(run.claim, &end, at(9)).await;
            let ended = ended.unwrap();
            assert_eq!(ended.state, state);
            assert_eq!(ended.started_at, run.execution.started_at);
            assert_eq!(ended.origin.run().unwrap().exit_code, end.exit_code);
            assert_eq!(lab.stored(run.claim).await, ended);
        }
    }

    /// A claim has the starter, the trigger and the scopes of the key, also after it was released.
    async fn a_claim_names_who_started_the_run_and_the_scopes_of_its_key(lab: &RunsLab) {
        let (job, user) = (lab.job(lab.ours, "parse").await.id, lab.ada.id);
        let mut runs = Vec::new();
        for (second, scopes) in [(0, vec![]), (1, vec![Scope::Write]), (2, vec![Scope::Read])] {
            let run = NewRun {
                trigger: (second == 1).then(|| TriggerId::new(given::uuid())),
                scopes: scopes.into_iter().collect(),
                ..new_run(job, user, at(second))
            };
            lab.executions.queue(lab.ours, &run).await.unwrap();
            runs.push(run);
        }
        for _ in 0..2 {
            let slots = FreeSlots::for_any(3);
            let claimed = lab.queue.claim(WorkKind::Run, slots, terms(at(9)));
            let mut found = Vec::new();
            for work in claimed.await.unwrap() {
                assert!(lab.queue.release(work.claim, at(10)).await.unwrap());
                if let Task::Run(run) = work.task {
                    found.push((run.execution.id, run.started_by, run.trigger, run.scopes));
                }
            }
            let expected = runs
                .iter()
                .map(|run| (run.id, run.started_by, run.trigger, run.scopes));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }

    /// The author is that of the version that runs, not of later ones.
    async fn a_run_names_the_author_of_its_script(lab: &RunsLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await;
        let job = Job {
            version_number: Some(1),
            ..given::job("parse", at(0))
        };
        let script = given::script(1, "pass\n", lab.ada.id);
        lab.jobs.add(lab.ours, &job, &script).await.unwrap();
        let changed = Job {
            version_number: Some(2),
            ..job.clone()
        };
        let script = given::script(2, "print()\n", bob.id);
        let updated = lab.jobs.update(lab.ours, 1, &changed, Some(&script));
        assert!(updated.await.unwrap());
        for (version, author) in [(1, &lab.ada), (2, &bob)] {
            let run = NewRun {
                script_version: version,
                ..new_run(job.id, lab.ada.id, at(0))
            };
            lab.executions.queue(lab.ours, &run).await.unwrap();
            let mut starters = lab.executions.starters(lab.ours, &[run.id]).await.unwrap();
            let starter = starters.remove(&run.id).unwrap();
            assert_eq!(starter.script_author, Some(NamedUser::of(author)));
            assert_eq!(starter.author, Author::of(&lab.ada, None));
        }
    }

    /// Runs and off-platform executions can be cancelled; a cancelled run is not claimed.
    async fn what_waits_or_runs_can_be_cancelled(lab: &RunsLab) {
        let running = lab.claimed(lab.ours, at(0)).await.execution;
        let waiting = lab.queued(lab.ours, at(1)).await;
        let elsewhere = lab.execution(lab.ours, at(0), Some(60)).await;
        for execution in [running, waiting, elsewhere] {
            let cancelled = lab.cancel(execution.id, at(5)).await;
            let expected = Execution {
                state: ExecutionState::Cancelled { at: at(5) },
                ..execution
            };
            assert_eq!(cancelled, expected);
            let stored = lab.executions.get(lab.ours, cancelled.id).await.unwrap();
            assert_eq!(stored, cancelled);
        }
        assert_eq!(lab.claim(at(6), 10).await, []);
    }

    /// An ended execution cannot be cancelled and is unchanged.
    async fn what_has_ended_cannot_be_cancelled(lab: &RunsLab) {
        let finished = lab.claimed(lab.ours, at(0)).await.claim;
        lab.finish(finished, &completed(), at(1)).await;
        let cancelled = lab.queued(lab.ours, at(0)).await.id;
        lab.cancel(cancelled, at(1)).await;
        let closed = lab.execution(lab.ours, at(0), None).await.id;
        let executions = &lab.executions;
        executions
            .close(lab.ours, closed, FinalStatus::Failed, at(1))
            .await
            .unwrap();
        let overdue = lab.execution(lab.ours, at(0), Some(1)).await.id;
        for (id, status) in [
            (execution_of(finished), "completed"),
            (cancelled, "cancelled"),
            (closed, "failed"),
            (overdue, "failed"),
        ] {
            let before = executions.get(lab.ours, id).await.unwrap();
            match executions.cancel(lab.ours, id, at(99)).await {
                Err(CancelExecutionError::Refused(CancelError::Ended(found))) => {
                    assert_eq!(found, status);
                }
                other => panic!("expected a refusal, got {other:?}"),
            }
            assert_eq!(executions.get(lab.ours, id).await.unwrap(), before);
        }
    }

    /// Another organization's run is not found and is not cancelled.
    async fn another_organizations_execution_cannot_be_cancelled(lab: &RunsLab) {
        let run = lab.claimed(lab.theirs, at(0)).await;
        let unknown = ExecutionId::new(given::uuid());
        for id in [run.execution.id, unknown] {
            match lab.executions.cancel(lab.ours, id, at(1)).await {
                Err(CancelExecutionError::Port(error)) => assert_not_found::<()>(Err(error)),
                other => panic!("expected NotFound, got {other:?}"),
            }
        }
        assert_eq!(lab.stored(run.claim).await, run.execution);
    }

    /// No slot is reserved where there is one organization.
    async fn an_organization_alone_uses_every_slot(
        harness: &Itself<impl Records + Subject<dyn WorkQueue>>,
    ) {
        let lab = harness.organization("lab").await.id;
        let job = harness.job(lab, "some job").await.id;
        let user = harness.user(lab, "ada@example.org").await.id;
        let executions = Subject::<dyn ExecutionRepository>::subject(harness);
        for second in 0..3 {
            let run = new_run(job, user, at(second));
            executions.queue(lab, &run).await.unwrap();
        }
        let queue = Subject::<dyn WorkQueue>::subject(harness);
        let slots = FreeSlots::of_worker(2, 0);
        let claimed = queue.claim(WorkKind::Run, slots, terms(at(4))).await;
        assert_eq!(claimed.unwrap().len(), 2);
    }
);
