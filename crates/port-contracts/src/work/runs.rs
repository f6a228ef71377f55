//! Contract of [`ExecutionRepository`] and [`RunKeys`]: runs of jobs, and what differs from other work.

use std::sync::Arc;

use labdata_domain::{
    executions::{CancelError, CloseError, Execution, ExecutionState, FinalStatus, Origin},
    ids::{ExecutionId, FileId, OrganizationId, UserId},
    jobs::Job,
    page::PageRequest,
    people::ApiKey,
    triggers::{Category, event::EventKind},
    work::{FreeSlots, NewRun, PlatformRun, RunEnd, WorkEnd, WorkKind, WorkRecord},
};
use labdata_ports::{
    data::{DataStore, WriteError},
    executions::{CancelExecutionError, CloseExecutionError, ExecutionFilter, ExecutionRepository},
    jobs::JobRepository,
    people::ApiKeyRepository,
    triggers::TriggerStore,
    work::{RunKeys, Task, WorkClaim, WorkQueue},
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::{
    Subject,
    assertions::assert_not_found,
    data::lab::{DataHarness, Lab, insert, request},
    fixtures::{Executions, Jobs},
    given::{self, at},
    triggers::events::recorded_events,
    work::lab::{TIMEOUT, lose, new_run, terms},
};

/// Makes one test of each clause of [`crate::work::runs`] and [`crate::work::nonces`].
#[macro_export]
macro_rules! runs_of_jobs_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, runs_of_jobs in work::runs:
            a_queued_run_reads_back_as_it_was_requested,
            the_runs_of_a_file_are_listed,
            a_run_needs_a_job_a_user_and_a_source_of_its_organization,
            a_run_past_its_deadline_is_left_to_its_worker,
            a_run_is_not_closed_from_outside,
            only_a_running_run_accepts_writes,
            finishing_stores_how_the_run_ended,
            what_waits_or_runs_can_be_cancelled,
            what_has_ended_cannot_be_cancelled,
            another_organizations_execution_cannot_be_cancelled,
            keys_die_with_the_hold_on_the_run,
            every_end_is_recorded_once,
            an_end_that_no_trigger_waits_for_is_no_event,
            a_lost_worker_issues_no_key,
            an_organization_alone_uses_every_slot,
        }
        $crate::run_nonces_contract!($harness $(, $test)?);
    };
}

/// A harness in which jobs can be run.
pub trait Runs:
    Jobs
    + Subject<dyn WorkQueue>
    + Subject<dyn RunKeys>
    + Subject<dyn ExecutionRepository>
    + Subject<dyn ApiKeyRepository>
    + Subject<dyn TriggerStore>
    + Subject<dyn JobRepository>
{
    /// The queue.
    fn queue(&self) -> Arc<dyn WorkQueue> {
        Subject::<dyn WorkQueue>::subject(self)
    }

    /// The keys of the runs.
    fn keys(&self) -> Arc<dyn RunKeys> {
        Subject::<dyn RunKeys>::subject(self)
    }

    /// The executions of the runs.
    fn executions(&self) -> Arc<dyn ExecutionRepository> {
        Subject::<dyn ExecutionRepository>::subject(self)
    }
}

impl<H> Runs for H where
    H: Jobs
        + Subject<dyn WorkQueue>
        + Subject<dyn RunKeys>
        + Subject<dyn ExecutionRepository>
        + Subject<dyn ApiKeyRepository>
        + Subject<dyn TriggerStore>
        + Subject<dyn JobRepository>
{
}

/// A claimed run.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) claim: WorkClaim,
    pub(crate) execution: Execution,
    pub(crate) started_by: UserId,
}

/// A run of the organization's that waits since then.
pub(crate) async fn queued<H: Runs>(
    harness: &H,
    organization: OrganizationId,
    queued_at: OffsetDateTime,
) -> Execution {
    let job = harness.job(organization, "some job").await.id;
    let user = harness.user(organization, "somebody@example.org").await.id;
    let run = new_run(job, user, queued_at);
    let executions = harness.executions();
    executions.queue(organization, &run).await.unwrap()
}

/// Claims runs at that time.
pub(crate) async fn claim<H: Runs>(harness: &H, now: OffsetDateTime, limit: u32) -> Vec<Run> {
    claim_from(&*harness.queue(), now, limit).await
}

/// Claims runs of that queue at that time.
pub(crate) async fn claim_from(queue: &dyn WorkQueue, now: OffsetDateTime, limit: u32) -> Vec<Run> {
    let slots = FreeSlots::for_any(limit);
    let claimed = queue.claim(WorkKind::Run, slots, terms(now)).await.unwrap();
    let runs = claimed.into_iter().map(|work| match work.task {
        Task::Run(run) => Run {
            claim: work.claim,
            execution: run.execution,
            started_by: run.started_by,
        },
        Task::Training(training) => panic!("{training:?} is no run"),
    });
    runs.collect()
}

/// A run that was queued and claimed then, alone in its queue.
pub(crate) async fn claimed<H: Runs>(
    harness: &H,
    organization: OrganizationId,
    now: OffsetDateTime,
) -> Run {
    let queued = queued(harness, organization, now).await;
    let claimed = claim(harness, now, 1).await.remove(0);
    assert_eq!(claimed.execution.id, queued.id);
    claimed
}

/// The execution of a claimed run.
pub(crate) fn execution_of(claim: WorkClaim) -> ExecutionId {
    claim.work.execution().unwrap()
}

/// Ends a run; returns its execution if the claim held it.
pub(crate) async fn finish(
    queue: &dyn WorkQueue,
    claim: WorkClaim,
    end: &RunEnd,
    now: OffsetDateTime,
) -> Option<Execution> {
    let end = WorkEnd::Run(end.clone());
    match queue.finish(claim, &end, now).await.unwrap()? {
        WorkRecord::Run(execution) => Some(execution),
        WorkRecord::Training(version) => panic!("{version:?} is no run"),
    }
}

/// The end of a successful script.
fn completed() -> RunEnd {
    RunEnd {
        exit_code: Some(0),
        error: None,
    }
}

async fn stored<H: Runs>(harness: &H, claim: WorkClaim) -> Execution {
    let executions = harness.executions();
    executions
        .get(claim.organization, execution_of(claim))
        .await
        .unwrap()
}

/// A new key of the run, stored.
async fn issued<H: Runs>(harness: &H, claim: WorkClaim) -> ApiKey {
    let user = harness
        .user(claim.organization, "somebody@example.org")
        .await;
    let key = ApiKey {
        execution: claim.work.execution(),
        ..given::api_key(&user)
    };
    assert!(harness.keys().issue(claim, &key).await.unwrap());
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

/// A queued run has every field and the state `queued`.
pub async fn a_queued_run_reads_back_as_it_was_requested<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let job = harness.job(lab, "parse \"Gen5\"").await;
    let user = harness.user(lab, "ada@example.org").await.id;
    let source = queued(harness, lab, at(0)).await.id;
    let parameters = json!({"threshold": 0.5, "wells": ["A1", "B2"], "who": null, "µ": "\"'\\"});
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
            script_version: 3,
            trigger_file: run.trigger_file,
            parameters: run.parameters.clone(),
            source: Some(source),
            exit_code: None,
        }),
        state: ExecutionState::Queued,
        created_at: at(1),
        started_at: None,
    };
    assert_eq!(
        harness.executions().queue(lab, &run).await.unwrap(),
        expected
    );
    let executions = harness.executions();
    assert_eq!(executions.get(lab, run.id).await.unwrap(), expected);
}

/// The list of a file's runs holds no run of another file, none without one, and none of another organization.
pub async fn the_runs_of_a_file_are_listed<H: Runs>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let [file, other] = [(); 2].map(|()| FileId::new(given::uuid()));
    let mut expected = Vec::new();
    for (organization, trigger_file) in [
        (ours, Some(file)),
        (ours, Some(other)),
        (ours, None),
        (theirs, Some(file)),
        (ours, Some(file)),
    ] {
        let name = format!("parse {}", given::uuid());
        let job = harness.job(organization, &name).await.id;
        let user = harness
            .user(organization, &format!("{job}@example.org"))
            .await;
        let run = NewRun {
            trigger_file,
            ..new_run(job, user.id, at(0))
        };
        harness
            .executions()
            .queue(organization, &run)
            .await
            .unwrap();
        if (organization, trigger_file) == (ours, Some(file)) {
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
    let executions = harness.executions();
    let listed = executions.list(ours, &filter, page).await.unwrap();
    let mut ids: Vec<ExecutionId> = listed.items.iter().map(|it| it.id).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
}

/// A job or file of another organization is not found, and nothing is queued.
pub async fn a_run_needs_a_job_a_user_and_a_source_of_its_organization<H: Runs>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let our_job = harness.job(ours, "parse").await.id;
    let our_user = harness.user(ours, "ada@example.org").await.id;
    let their_job = harness.job(theirs, "parse").await.id;
    let their_user = harness.user(theirs, "bob@example.org").await.id;
    let their_run = new_run(their_job, their_user, at(0));
    let executions = harness.executions();
    executions.queue(theirs, &their_run).await.unwrap();
    for run in [
        new_run(their_job, our_user, at(0)),
        new_run(our_job, their_user, at(0)),
        NewRun {
            source: Some(their_run.id),
            ..new_run(our_job, our_user, at(0))
        },
    ] {
        assert_not_found(executions.queue(ours, &run).await);
        assert_not_found(executions.get(ours, run.id).await);
    }
    assert_eq!(claim(harness, at(1), 10).await.len(), 1);
}

/// The sweeper of off-platform executions does not fail a run; its worker does.
pub async fn a_run_past_its_deadline_is_left_to_its_worker<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let claimed = claimed(harness, lab, at(0)).await;
    let late = at(0) + TIMEOUT + Duration::hours(1);
    let executions = harness.executions();
    assert_eq!(executions.fail_overdue(late, 10).await.unwrap(), []);
    let stored = executions.get(lab, claimed.execution.id).await.unwrap();
    assert_eq!(stored, claimed.execution);
}

/// A run on the platform cannot be closed in any state.
pub async fn a_run_is_not_closed_from_outside<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let running = claimed(harness, lab, at(0)).await.execution;
    let waiting = queued(harness, lab, at(1)).await;
    let executions = harness.executions();
    for run in [running, waiting] {
        for status in [FinalStatus::Completed, FinalStatus::Failed] {
            match executions.close(lab, run.id, status, at(2)).await {
                Err(CloseExecutionError::Refused(CloseError::RunsOnPlatform)) => {}
                other => panic!("expected a refusal, got {other:?}"),
            }
        }
        assert_eq!(executions.get(lab, run.id).await.unwrap(), run);
    }
}

/// A queued or ended run accepts no writes.
pub async fn only_a_running_run_accepts_writes<H>(harness: &H)
where
    H: Runs + DataHarness + Subject<dyn DataStore>,
{
    let lab = Lab::with_tables(harness).await;
    let organization = lab.organization;
    let sample = |name: &str| request([insert("sample", json!([{ "name": name }]))], []);
    let waiting = queued(harness, organization, at(0)).await.id;
    let refused = lab.write_under(waiting, sample("early")).await;
    assert!(
        matches!(&refused, Err(WriteError::ExecutionEnded(status)) if status == "queued"),
        "{refused:?}"
    );
    assert_eq!(lab.count("sample").await, 0);
    claim(harness, at(0), 1).await;
    let outcome = lab.write_under(waiting, sample("in time")).await.unwrap();
    assert_eq!(outcome.execution, Some(waiting));
    let still = lab.execution(waiting).await;
    assert_eq!(still.state.as_str(), "running");
    harness
        .executions()
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
        let ended = finish(&*harness.queue(), run.claim, &end, at(9)).await;
        let ended = ended.unwrap();
        assert_eq!(ended.state, state);
        assert_eq!(ended.started_at, run.execution.started_at);
        assert_eq!(ended.origin.run().unwrap().exit_code, end.exit_code);
        assert_eq!(stored(harness, run.claim).await, ended);
    }
}

/// Runs and off-platform executions can be cancelled; a cancelled run is not claimed.
pub async fn what_waits_or_runs_can_be_cancelled<H: Runs + Executions>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let running = claimed(harness, lab, at(0)).await.execution;
    let waiting = queued(harness, lab, at(1)).await;
    let elsewhere = harness.execution(lab, at(0), Some(60)).await;
    for execution in [running, waiting, elsewhere] {
        let executions = harness.executions();
        let cancelled = executions.cancel(lab, execution.id, at(5)).await.unwrap();
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
    finish(&*queue, finished, &completed(), at(1)).await;
    let cancelled = queued(harness, lab, at(0)).await.id;
    harness
        .executions()
        .cancel(lab, cancelled, at(1))
        .await
        .unwrap();
    let closed = harness.execution(lab, at(0), None).await.id;
    let executions = harness.executions();
    executions
        .close(lab, closed, FinalStatus::Failed, at(1))
        .await
        .unwrap();
    let overdue = harness.execution(lab, at(0), Some(1)).await.id;
    for (id, status) in [
        (execution_of(finished), "completed"),
        (cancelled, "cancelled"),
        (closed, "failed"),
        (overdue, "failed"),
    ] {
        let before = executions.get(lab, id).await.unwrap();
        match executions.cancel(lab, id, at(99)).await {
            Err(CancelExecutionError::Refused(CancelError::Ended(found))) => {
                assert_eq!(found, status);
            }
            other => panic!("expected a refusal, got {other:?}"),
        }
        assert_eq!(executions.get(lab, id).await.unwrap(), before);
    }
}

/// Another organization's run is not found and is not cancelled.
pub async fn another_organizations_execution_cannot_be_cancelled<H: Runs>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let run = claimed(harness, theirs, at(0)).await;
    let unknown = ExecutionId::new(given::uuid());
    for id in [run.execution.id, unknown] {
        match harness.executions().cancel(ours, id, at(1)).await {
            Err(CancelExecutionError::Port(error)) => assert_not_found::<()>(Err(error)),
            other => panic!("expected NotFound, got {other:?}"),
        }
    }
    assert_eq!(stored(harness, run.claim).await, run.execution);
}

/// A finish, a cancel, a release and a loss revoke the run's keys, and no other keys.
pub async fn keys_die_with_the_hold_on_the_run<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let queue = harness.queue();
    let other = claimed(harness, lab, at(0)).await.claim;
    let others = issued(harness, other).await;

    let run = claimed(harness, lab, at(0)).await.claim;
    let keys = [issued(harness, run).await, issued(harness, run).await];
    finish(&*queue, run, &completed(), at(5)).await;
    for key in keys {
        assert_eq!(revoked(harness, &key).await, Some(at(5)));
    }

    let run = claimed(harness, lab, at(0)).await.claim;
    let key = issued(harness, run).await;
    let executions = harness.executions();
    executions
        .cancel(lab, execution_of(run), at(6))
        .await
        .unwrap();
    assert_eq!(revoked(harness, &key).await, Some(at(6)));

    let run = claimed(harness, lab, at(0)).await.claim;
    let key = issued(harness, run).await;
    queue.release(run, at(7)).await.unwrap();
    assert_eq!(revoked(harness, &key).await, Some(at(7)));

    let run = claim(harness, at(0), 1).await.remove(0).claim;
    let key = issued(harness, run).await;
    lose(&*queue, run, at(20)).await;
    assert_eq!(revoked(harness, &key).await, Some(at(20)));
    assert_eq!(revoked(harness, &others).await, None);
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
    lose(&*queue, run, at(20)).await;
    let again = claim(harness, at(30), 1).await.remove(0).claim;
    queue.release(again, at(31)).await.unwrap();
    assert_eq!(reported(harness).await, []);
    let last = claim(harness, at(40), 1).await.remove(0).claim;
    lose(&*queue, last, at(60)).await;
    assert_eq!(reported(harness).await, ended(execution_of(run)));

    let run = claimed(harness, lab, at(0)).await.claim;
    for _ in 0..2 {
        finish(&*queue, run, &completed(), at(5)).await;
    }
    let event = recorded_events(harness, 100).await.remove(0);
    let expected = (lab, EventKind::JobCompleted(execution_of(run)), at(5));
    assert_eq!((event.organization, event.kind, event.created_at), expected);

    let waiting = queued(harness, lab, at(0)).await.id;
    for _ in 0..2 {
        executions.cancel(lab, waiting, at(5)).await.ok();
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
    executions.cancel(lab, cancelled, at(5)).await.unwrap();
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
    finish(&*queue, run, &completed(), at(5)).await;
    let waiting = queued(harness, lab, at(0)).await.id;
    executions.cancel(lab, waiting, at(5)).await.unwrap();
    let elsewhere = harness.execution(lab, at(0), None).await.id;
    let closed = executions.close(lab, elsewhere, FinalStatus::Failed, at(5));
    closed.await.unwrap();
    harness.execution(lab, at(0), Some(1)).await;
    executions.fail_overdue(at(60), 10).await.unwrap();
    wait_for_ends(harness, lab).await;
    assert_eq!(reported(harness).await, []);
}

/// A lost worker issues no key, neither while the run is queued again nor while another worker has it.
pub async fn a_lost_worker_issues_no_key<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "ada@example.org").await;
    let lost = claimed(harness, lab, at(0)).await.claim;
    lose(&*harness.queue(), lost, at(20)).await;
    for running_again in [false, true] {
        if running_again {
            assert_eq!(claim(harness, at(30), 1).await.len(), 1);
        }
        let key = given::api_key(&user);
        assert!(!harness.keys().issue(lost, &key).await.unwrap());
        let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
        assert!(keys.find_by_prefix(&key.prefix).await.unwrap().is_none());
    }
}

/// No slot is reserved where there is one organization.
pub async fn an_organization_alone_uses_every_slot<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    for second in 0..3 {
        queued(harness, lab, at(second)).await;
    }
    let (queue, slots) = (harness.queue(), FreeSlots::of_worker(2, 0));
    let claimed = queue.claim(WorkKind::Run, slots, terms(at(4))).await;
    assert_eq!(claimed.unwrap().len(), 2);
}
