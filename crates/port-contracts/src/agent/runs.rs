//! Contract of [`AgentRunRepository`].

use std::sync::Arc;

use futures::{FutureExt, future::join_all};
use labdata_domain::{
    agent::{AgentLimits, RunFacts, RunRefusal, TooManyRuns, Usage, UsageMonth},
    ids::{AgentRunId, UserId},
    people::tenancy::User,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    agent::{AgentRunRepository, BeginRun, BeginRunError},
};
use time::{Duration, OffsetDateTime};

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::Tenants,
    given::{self, at},
};

/// Makes one test of each clause of [`crate::agent::runs`].
#[macro_export]
macro_rules! agent_runs_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, agent_runs in agent::runs:
            runs_count_until_they_end_or_their_leases_do,
            a_renewed_run_counts_further,
            racing_runs_begin_within_the_limit,
            a_run_needs_a_user_of_its_organization,
            a_cancelled_run_is_told_once_it_renews,
            cancelling_wakes_the_follower_of_the_run,
            only_its_user_cancels_a_run_in_progress,
            tokens_add_up_by_organization_and_month,
            racing_tokens_all_count,
            the_tokens_of_a_month_decide_on_a_run,
        }
    };
}

/// Prerequisites of these clauses.
pub trait AgentRuns: Tenants + Subject<dyn AgentRunRepository> {}

impl<H: Tenants + Subject<dyn AgentRunRepository>> AgentRuns for H {}

fn runs<H: AgentRuns>(harness: &H) -> Arc<dyn AgentRunRepository> {
    Subject::<dyn AgentRunRepository>::subject(harness)
}

async fn user<H: AgentRuns>(harness: &H, organization: &str) -> User {
    let organization = harness.organization(organization).await.id;
    harness.user(organization, "ada@example.org").await
}

/// A run of that user, with a lease of 30 s.
fn run(user: &User, now: OffsetDateTime) -> BeginRun {
    BeginRun {
        organization: user.organization,
        user: user.id,
        id: AgentRunId::new(given::uuid()),
        now,
        lease_until: now + Duration::seconds(30),
    }
}

/// Permits two runs at once.
fn two(facts: RunFacts) -> Result<(), RunRefusal> {
    let limits = AgentLimits {
        runs_per_organization: 2,
        ..AgentLimits::default()
    };
    Ok(limits.check_runs(facts.in_progress)?)
}

fn is_refused(begun: &Result<(), BeginRunError>) -> bool {
    let expected = RunRefusal::TooMany(TooManyRuns(2));
    matches!(begun, Err(BeginRunError::Refused(refusal)) if *refusal == expected)
}

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        total_tokens: None,
    }
    .with_total()
}

/// An organization has as many runs as `decide` permits. One that ended does not count, nor does one
/// whose lease has ended; those of another organization never do.
pub async fn runs_count_until_they_end_or_their_leases_do<H: AgentRuns>(harness: &H) {
    let (ours, theirs) = (user(harness, "ours").await, user(harness, "theirs").await);
    let runs = runs(harness);
    let (first, second) = (run(&ours, at(0)), run(&ours, at(10)));
    runs.begin(first, &two).await.unwrap();
    runs.begin(second, &two).await.unwrap();
    assert!(is_refused(&runs.begin(run(&ours, at(11)), &two).await));
    runs.begin(run(&theirs, at(11)), &two).await.unwrap();
    runs.end(ours.organization, first.id).await.unwrap();
    runs.end(ours.organization, first.id).await.unwrap();
    runs.begin(run(&ours, at(12)), &two).await.unwrap();
    assert!(is_refused(&runs.begin(run(&ours, at(39)), &two).await));
    let begun = runs.begin(run(&ours, at(40)), &two).await;
    begun.unwrap();
}

/// A run whose lease is renewed counts until the end of the new one.
pub async fn a_renewed_run_counts_further<H: AgentRuns>(harness: &H) {
    let user = user(harness, "ours").await;
    let runs = runs(harness);
    for _ in 0..2 {
        let run = run(&user, at(0));
        runs.begin(run, &two).await.unwrap();
        let renewed = runs.renew(user.organization, run.id, at(100)).await;
        assert!(!renewed.unwrap());
    }
    assert!(is_refused(&runs.begin(run(&user, at(99)), &two).await));
    runs.begin(run(&user, at(100)), &two).await.unwrap();
}

/// Of racing runs as many begin as may.
pub async fn racing_runs_begin_within_the_limit<H: AgentRuns>(harness: &H) {
    let user = user(harness, "ours").await;
    let runs = runs(harness);
    let begun = (0..6).map(|_| runs.begin(run(&user, at(0)), &two));
    let begun = join_all(begun).await;
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 2);
    assert_eq!(begun.iter().filter(|begun| is_refused(begun)).count(), 4);
}

/// A user of another organization begins no run.
pub async fn a_run_needs_a_user_of_its_organization<H: AgentRuns>(harness: &H) {
    let (ours, theirs) = (user(harness, "ours").await, user(harness, "theirs").await);
    let mixed = BeginRun {
        user: theirs.id,
        ..run(&ours, at(0))
    };
    let begun = runs(harness).begin(mixed, &two).await;
    assert!(matches!(
        begun,
        Err(BeginRunError::Port(PortError::NotFound(Resource::User)))
    ));
}

/// A run learns that it is cancelled when it renews its lease.
pub async fn a_cancelled_run_is_told_once_it_renews<H: AgentRuns>(harness: &H) {
    let user = user(harness, "ours").await;
    let runs = runs(harness);
    let (one, other) = (run(&user, at(0)), run(&user, at(0)));
    for run in [one, other] {
        runs.begin(run, &two).await.unwrap();
    }
    for _ in 0..2 {
        let cancelled = runs.cancel(user.organization, user.id, one.id, at(1)).await;
        cancelled.unwrap();
    }
    let mut reported = Vec::new();
    for run in [one, other] {
        let renewed = runs.renew(user.organization, run.id, at(60)).await;
        reported.push(renewed.unwrap());
    }
    assert_eq!(reported, [true, false]);
    runs.end(user.organization, one.id).await.unwrap();
    let renewed = runs.renew(user.organization, one.id, at(60)).await;
    assert!(!renewed.unwrap(), "an ended run");
}

/// A follower of a run wakes when that run is cancelled.
pub async fn cancelling_wakes_the_follower_of_the_run<H: AgentRuns>(harness: &H) {
    let user = user(harness, "ours").await;
    let runs = runs(harness);
    let run = run(&user, at(0));
    runs.begin(run, &two).await.unwrap();
    let mut follower = runs.follow(run.id);
    // A subscription may begin with news that are none.
    while follower.next().now_or_never().is_some() {}
    let cancelled = runs.cancel(user.organization, user.id, run.id, at(1)).await;
    cancelled.unwrap();
    follower.next().await;
}

/// A run that ended, whose lease has ended, or that is another user's or organization's is not found.
pub async fn only_its_user_cancels_a_run_in_progress<H: AgentRuns>(harness: &H) {
    let (ours, theirs) = (user(harness, "ours").await, user(harness, "theirs").await);
    let colleague = harness.user(ours.organization, "grace@example.org").await;
    let runs = runs(harness);
    let run = run(&ours, at(0));
    runs.begin(run, &two).await.unwrap();
    let cancel = async |of: &User, user: UserId, seconds| {
        runs.cancel(of.organization, user, run.id, at(seconds))
            .await
    };
    assert_not_found(cancel(&theirs, theirs.id, 1).await);
    assert_not_found(cancel(&ours, colleague.id, 1).await);
    assert_not_found(cancel(&ours, ours.id, 30).await);
    runs.end(theirs.organization, run.id).await.unwrap();
    cancel(&ours, ours.id, 29).await.unwrap();
    runs.end(ours.organization, run.id).await.unwrap();
    assert_not_found(cancel(&ours, ours.id, 1).await);
}

/// Tokens are summed by organization and month.
pub async fn tokens_add_up_by_organization_and_month<H: AgentRuns>(harness: &H) {
    let (ours, theirs) = (user(harness, "ours").await, user(harness, "theirs").await);
    let runs = runs(harness);
    let this = UsageMonth::of(at(0));
    let next = UsageMonth::of(this.end());
    let add = async |of: &User, month, added| {
        let sum = runs.add_usage(of.organization, month, added).await;
        sum.unwrap()
    };
    assert_eq!(add(&ours, this, usage(10, 5)).await, usage(10, 5));
    assert_eq!(add(&ours, this, usage(3, 2)).await, usage(13, 7));
    assert_eq!(add(&ours, next, usage(1, 1)).await, usage(1, 1));
    assert_eq!(add(&theirs, this, usage(2, 2)).await, usage(2, 2));
    let read = runs.usage(ours.organization, this).await;
    assert_eq!(read.unwrap(), usage(13, 7));
    let read = runs.usage(theirs.organization, next).await;
    assert_eq!(read.unwrap(), usage(0, 0));
    let unknown = given::uuid().into();
    let added = runs.add_usage(unknown, this, usage(1, 1)).await;
    assert_not_found(added);
}

/// No token of racing runs is lost.
pub async fn racing_tokens_all_count<H: AgentRuns>(harness: &H) {
    let user = user(harness, "ours").await;
    let runs = runs(harness);
    let month = UsageMonth::of(at(0));
    let adding = (0..8).map(|_| runs.add_usage(user.organization, month, usage(2, 1)));
    for added in join_all(adding).await {
        added.unwrap();
    }
    let sum = runs.usage(user.organization, month).await;
    assert_eq!(sum.unwrap(), usage(16, 8));
}

/// A decision sees the tokens of the month in which the run begins.
pub async fn the_tokens_of_a_month_decide_on_a_run<H: AgentRuns>(harness: &H) {
    let user = user(harness, "ours").await;
    let runs = runs(harness);
    let this = UsageMonth::of(at(0));
    let added = runs.add_usage(user.organization, this, usage(60, 40)).await;
    added.unwrap();
    let begin = async |now| {
        let limits = AgentLimits {
            monthly_tokens: Some(100),
            ..AgentLimits::default()
        };
        let decide = move |facts| limits.check_start(facts, now);
        runs.begin(run(&user, now), &decide).await
    };
    let refused = begin(at(0)).await;
    assert!(matches!(
        refused,
        Err(BeginRunError::Refused(RunRefusal::BudgetUsed {
            tokens: 100,
            ..
        }))
    ));
    begin(this.end()).await.unwrap();
}
