//! Contract of [`RunQueue`]: queued and running runs.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    executions::{CloseError, Execution, ExecutionState, FinalStatus, Origin},
    ids::{ExecutionId, FileId, JobId, OrganizationId, UserId},
    page::PageRequest,
    work::{FreeSlots, NewRun, PlatformRun, RunEnd, WaitingRun, next_runs},
};
use labdata_ports::{
    data::{DataStore, WriteError},
    executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository},
    jobs::JobRepository,
    people::ApiKeyRepository,
    triggers::TriggerStore,
    work::{ClaimedRun, RunClaim, RunNews, RunQueue},
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::{
    Subject,
    assertions::assert_not_found,
    data::lab::{DataHarness, Lab, insert, request},
    fixtures::Jobs,
    given::{self, at},
};

/// Makes one test of each clause of [`crate::work::queue`], [`crate::work::queue_ends`] and
/// [`crate::work::nonces`].
#[macro_export]
macro_rules! run_queue_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, run_queue in work::queue:
            a_queued_run_reads_back_as_it_was_requested,
            the_runs_of_a_file_are_listed,
            a_run_needs_a_job_a_user_and_a_source_of_its_organization,
            the_oldest_runs_are_claimed_first,
            organizations_take_turns,
            claims_take_the_runs_that_the_domain_names,
            long_runs_of_one_organization_leave_a_slot_to_others,
            an_organization_alone_uses_every_slot,
            a_claimed_run_is_running_within_its_timeout,
            racing_workers_claim_each_run_once,
            a_run_past_its_deadline_is_left_to_its_worker,
            a_run_is_not_closed_from_outside,
            only_a_running_run_accepts_writes,
            subscribers_are_signaled_when_a_run_is_queued,
            subscribers_are_signaled_when_a_run_ends,
        }
        $crate::run_queue_ends_contract!($harness $(, $test)?);
        $crate::run_nonces_contract!($harness $(, $test)?);
    };
}

/// Lease of a claim in clauses.
pub const LEASE: Duration = Duration::seconds(20);

/// Timeout of a run in clauses.
pub const TIMEOUT: Duration = Duration::minutes(60);

/// A harness in which jobs can be run.
pub trait Runs:
    Jobs
    + Subject<dyn RunQueue>
    + Subject<dyn ExecutionRepository>
    + Subject<dyn ApiKeyRepository>
    + Subject<dyn TriggerStore>
    + Subject<dyn JobRepository>
{
    /// The queue.
    fn queue(&self) -> std::sync::Arc<dyn RunQueue> {
        Subject::<dyn RunQueue>::subject(self)
    }

    /// The executions of the runs.
    fn executions(&self) -> std::sync::Arc<dyn ExecutionRepository> {
        Subject::<dyn ExecutionRepository>::subject(self)
    }
}

impl<H> Runs for H where
    H: Jobs
        + Subject<dyn RunQueue>
        + Subject<dyn ExecutionRepository>
        + Subject<dyn ApiKeyRepository>
        + Subject<dyn TriggerStore>
        + Subject<dyn JobRepository>
{
}

/// A run that is not queued yet, of no file and without parameters.
pub(crate) fn new_run(job: JobId, user: UserId, queued_at: OffsetDateTime) -> NewRun {
    NewRun {
        id: ExecutionId::new(given::uuid()),
        job,
        script_version: 3,
        trigger_file: None,
        parameters: serde_json::Map::new(),
        source: None,
        started_by: user,
        api_key: None,
        trigger: None,
        queued_at,
    }
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
    harness.queue().enqueue(organization, &run).await.unwrap()
}

/// Claims runs at that time.
pub(crate) async fn claim<H: Runs>(
    harness: &H,
    now: OffsetDateTime,
    limit: u32,
) -> Vec<ClaimedRun> {
    claim_for(harness, now, FreeSlots::for_any(limit)).await
}

async fn claim_for<H: Runs>(harness: &H, now: OffsetDateTime, slots: FreeSlots) -> Vec<ClaimedRun> {
    let queue = harness.queue();
    queue.claim(now, LEASE, TIMEOUT, slots).await.unwrap()
}

/// A run that was queued and claimed then, alone in its queue.
pub(crate) async fn claimed<H: Runs>(
    harness: &H,
    organization: OrganizationId,
    now: OffsetDateTime,
) -> ClaimedRun {
    let queued = queued(harness, organization, now).await;
    let claimed = claim(harness, now, 1).await.remove(0);
    assert_eq!(claimed.execution.id, queued.id);
    claimed
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
    assert_eq!(harness.queue().enqueue(lab, &run).await.unwrap(), expected);
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
        harness.queue().enqueue(organization, &run).await.unwrap();
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
    let queue = harness.queue();
    queue.enqueue(theirs, &their_run).await.unwrap();
    for run in [
        new_run(their_job, our_user, at(0)),
        new_run(our_job, their_user, at(0)),
        NewRun {
            source: Some(their_run.id),
            ..new_run(our_job, our_user, at(0))
        },
    ] {
        assert_not_found(queue.enqueue(ours, &run).await);
        assert_not_found(harness.executions().get(ours, run.id).await);
    }
    assert_eq!(claim(harness, at(1), 10).await.len(), 1);
}

/// A claim takes the runs queued first, across organizations, at most `limit`.
pub async fn the_oldest_runs_are_claimed_first<H: Runs>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let third = queued(harness, ours, at(30)).await.id;
    let first = queued(harness, theirs, at(10)).await.id;
    let second = queued(harness, ours, at(20)).await.id;
    let ids = |claimed: Vec<ClaimedRun>| -> Vec<(OrganizationId, ExecutionId)> {
        let claims = claimed.into_iter().map(|run| run.claim);
        claims
            .map(|claim| (claim.organization, claim.execution))
            .collect()
    };
    let (two, rest) = (
        claim(harness, at(40), 2).await,
        claim(harness, at(40), 2).await,
    );
    assert_eq!(ids(two), [(theirs, first), (ours, second)]);
    assert_eq!(ids(rest), [(ours, third)]);
    assert_eq!(claim(harness, at(40), 2).await, []);
}

/// The last slot of a worker stays free for an organization that runs nothing.
pub async fn long_runs_of_one_organization_leave_a_slot_to_others<H: Runs>(harness: &H) {
    let (many, few) = harness.two_organizations().await;
    for second in 0..3 {
        queued(harness, many, at(second)).await;
    }
    let claimed = claim_for(harness, at(4), FreeSlots::of_worker(2, 0)).await;
    assert_eq!(claimed.len(), 1);
    let one_free = FreeSlots::of_worker(2, 1);
    assert_eq!(claim_for(harness, at(5), one_free).await, []);
    let short = queued(harness, few, at(6)).await;
    let claimed = claim_for(harness, at(7), one_free).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].execution.id, short.id);
}

/// No slot is reserved where there is one organization.
pub async fn an_organization_alone_uses_every_slot<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    for second in 0..3 {
        queued(harness, lab, at(second)).await;
    }
    let slots = FreeSlots::of_worker(2, 0);
    assert_eq!(claim_for(harness, at(4), slots).await.len(), 2);
}

/// An organization with many queued runs does not delay the rest.
pub async fn organizations_take_turns<H: Runs>(harness: &H) {
    let (many, few) = harness.two_organizations().await;
    for second in 0..90 {
        queued(harness, many, at(second)).await;
    }
    for second in [100, 101, 102] {
        queued(harness, few, at(second)).await;
    }
    let turn = async |limit| -> Vec<OrganizationId> {
        let claimed = claim(harness, at(200), limit).await.into_iter();
        claimed.map(|run| run.claim.organization).collect()
    };
    assert_eq!(turn(2).await, [many, few]);
    // One of each is running: the older one is next, then the organization with fewer.
    assert_eq!(turn(1).await, [many]);
    assert_eq!(turn(1).await, [few]);
    assert_eq!(turn(3).await, [many, many, few]);
    // No other organization has queued runs.
    assert_eq!(turn(90).await.len(), 86);
    assert_eq!(turn(1).await, []);
}

/// For any queue, a claim takes the runs that [`next_runs`] names, in its order.
pub async fn claims_take_the_runs_that_the_domain_names<H: Runs>(harness: &H) {
    let mut organizations = Vec::new();
    for name in ["first", "second", "third"] {
        organizations.push(harness.organization(name).await.id);
    }
    let (mut waiting, mut running) = (Vec::new(), Vec::new());
    let mut numbers = pseudo_random(7);
    for round in 0..24 {
        for _ in 0..numbers.next().unwrap() % 4 {
            let organization = organizations[numbers.next().unwrap() % 3];
            // Some are queued at the same time: their ids decide.
            let run = queued(harness, organization, at(round / 2)).await;
            waiting.push(WaitingRun {
                organization,
                id: run.id,
                queued_at: run.created_at,
            });
        }
        let concurrency = u32::try_from(numbers.next().unwrap() % 4).unwrap();
        let slots = FreeSlots::of_worker(concurrency, 0);
        let mut held = BTreeMap::new();
        for claim in &running {
            let claim: &RunClaim = claim;
            *held.entry(claim.organization).or_default() += 1;
        }
        let expected = next_runs(waiting.clone(), &held, true, slots);
        let claimed = claim_for(harness, at(100), slots).await;
        let claims: Vec<RunClaim> = claimed.into_iter().map(|run| run.claim).collect();
        let named = |run: &WaitingRun| (run.organization, run.id);
        assert_eq!(
            claims
                .iter()
                .map(|claim| (claim.organization, claim.execution))
                .collect::<Vec<_>>(),
            expected.iter().map(named).collect::<Vec<_>>(),
            "round {round}: {slots:?} for {waiting:?} beside {held:?}"
        );
        waiting.retain(|run| !expected.contains(run));
        running.extend(claims);
        let end = RunEnd {
            exit_code: Some(0),
            error: None,
        };
        while !running.is_empty() && numbers.next().unwrap().is_multiple_of(3) {
            let claim = running.swap_remove(numbers.next().unwrap() % running.len());
            let finished = harness.queue().finish(claim, &end, at(101)).await;
            assert!(finished.unwrap().is_some());
        }
    }
}

/// Numbers that look random and are the same for the same seed (Knuth's MMIX generator).
pub(crate) fn pseudo_random(seed: u64) -> impl Iterator<Item = usize> {
    let step = |state: &u64| {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        Some(next.wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(seed), step)
        .skip(1)
        .map(|state| usize::try_from(state >> 33).unwrap())
}

/// A claimed run starts at the time of the claim, and its deadline is the end of its timeout.
pub async fn a_claimed_run_is_running_within_its_timeout<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let user = harness.user(lab, "somebody@example.org").await.id;
    let waiting = queued(harness, lab, at(0)).await;
    let claimed = claim(harness, at(7), 1).await.remove(0);
    let running = Execution {
        state: ExecutionState::Running {
            deadline: Some(at(7) + TIMEOUT),
        },
        started_at: Some(at(7)),
        ..waiting
    };
    assert_eq!(claimed.execution, running);
    assert_eq!((claimed.claim.attempt, claimed.started_by), (1, user));
    let stored = harness.executions().get(lab, running.id).await.unwrap();
    assert_eq!(stored, running);
}

/// Concurrent workers claim every run exactly once.
pub async fn racing_workers_claim_each_run_once<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let mut waiting = BTreeSet::new();
    for second in 0..24 {
        waiting.insert(queued(harness, lab, at(second)).await.id);
    }
    let mut given_out = Vec::new();
    loop {
        let claims = join_all((0..6).map(|_| claim(harness, at(60), 3))).await;
        let before = given_out.len();
        given_out.extend(claims.into_iter().flatten().map(|run| run.execution.id));
        if given_out.len() == before {
            break;
        }
    }
    assert_eq!(given_out.len(), 24);
    assert_eq!(given_out.into_iter().collect::<BTreeSet<_>>(), waiting);
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
        .queue()
        .cancel(organization, waiting, at(1))
        .await
        .unwrap();
    let refused = lab.write_under(waiting, sample("late")).await;
    assert!(
        matches!(&refused, Err(WriteError::ExecutionEnded(status)) if status == "cancelled"),
        "{refused:?}"
    );
}

/// An earlier subscriber is notified, even if the notification came before it waited.
pub async fn subscribers_are_signaled_when_a_run_is_queued<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let mut news = harness.queue().subscribe(RunNews::Queued);
    queued(harness, lab, at(0)).await;
    news.next().await;
}

/// Subscribers are notified of a cancel and of any other end.
pub async fn subscribers_are_signaled_when_a_run_ends<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let waiting = queued(harness, lab, at(0)).await.id;
    let queue = harness.queue();
    let mut news = queue.subscribe(RunNews::Ended);
    queue.cancel(lab, waiting, at(1)).await.unwrap();
    news.next().await;
}
