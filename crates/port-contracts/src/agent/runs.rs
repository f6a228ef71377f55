//! Contract of [`AgentRunRepository`].

use futures::{FutureExt, future::join_all};
use labdata_domain::{
    agent::{AgentLimits, RunFacts, RunRefusal, TooManyRuns, Usage, UsageMonth},
    ids::{AgentRunId, OrganizationId, UserId},
    people::tenancy::User,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    agent::{AgentRunRepository, BeginRun, BeginRunError, RenewedRun},
};
use time::{Duration, OffsetDateTime};

use crate::{
    assertions::assert_not_found,
    given::{self, at},
    lab::lab,
};

lab!(
    /// Runs of assistants, for two users of two organizations.
    pub struct AgentRunsLab {
        /// Runs and their use of tokens.
        pub runs: dyn AgentRunRepository,
    }
);

impl AgentRunsLab {
    /// Begins a run if not more than one is in progress.
    async fn begin(&self, run: BeginRun) -> Result<(), BeginRunError> {
        self.runs.begin(run, &two).await
    }

    /// Ends a run of ours.
    async fn end(&self, run: BeginRun) {
        self.runs.end(self.ours, run.id).await.unwrap();
    }

    /// Renews a run of ours.
    async fn renew(&self, run: BeginRun, lease: Duration) -> RenewedRun {
        let renewed = self.runs.renew(self.ours, run.id, lease);
        renewed.await.unwrap()
    }

    /// Adds tokens, and returns the sum of the month.
    async fn add_usage(
        &self,
        organization: OrganizationId,
        month: UsageMonth,
        usage: Usage,
    ) -> Usage {
        let sum = self.runs.add_usage(organization, month, usage);
        sum.await.unwrap()
    }
}

/// A lease that does not end during a test.
const LEASE: Duration = Duration::HOUR;

/// A run of that user, with a lease that does not end during a test.
fn run(user: &User, now: OffsetDateTime) -> BeginRun {
    BeginRun {
        organization: user.organization,
        user: user.id,
        id: AgentRunId::new(given::uuid()),
        now,
        lease: LEASE,
    }
}

/// A run of that user, whose lease ends at once.
fn lost_run(user: &User) -> BeginRun {
    BeginRun {
        lease: Duration::ZERO,
        ..run(user, at(0))
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

crate::suite!(
    use agent::runs as agent_runs;

    /// An organization has as many runs as `decide` permits. One that ended does not count, nor does one
    /// whose lease has ended; those of another organization never do.
    async fn runs_count_until_they_end_or_their_leases_do(lab: &AgentRunsLab) {
        let (first, second) = (run(&lab.ada, at(0)), lost_run(&lab.ada));
        lab.begin(first).await.unwrap();
        lab.begin(second).await.unwrap();
        lab.begin(run(&lab.ada, at(0))).await.unwrap();
        assert!(is_refused(&lab.begin(run(&lab.ada, at(0))).await));
        lab.begin(run(&lab.eve, at(0))).await.unwrap();
        lab.end(first).await;
        lab.end(first).await;
        lab.begin(run(&lab.ada, at(0))).await.unwrap();
        assert!(is_refused(&lab.begin(run(&lab.ada, at(0))).await));
    }

    /// A run whose lease is renewed counts again, at any time of its server's clock.
    async fn a_renewed_run_counts_further(lab: &AgentRunsLab) {
        for _ in 0..2 {
            let lost = lost_run(&lab.ada);
            lab.begin(lost).await.unwrap();
            assert_eq!(lab.renew(lost, LEASE).await, RenewedRun::Held);
        }
        assert!(is_refused(&lab.begin(run(&lab.ada, at(1_000_000))).await));
        let theirs = run(&lab.eve, at(0));
        lab.begin(theirs).await.unwrap();
        let renewed = lab.runs.renew(lab.theirs, theirs.id, Duration::ZERO).await;
        assert_eq!(renewed.unwrap(), RenewedRun::Held);
        for _ in 0..2 {
            lab.begin(run(&lab.eve, at(0))).await.unwrap();
        }
    }

    /// A run learns that another one took its place after its lease had ended.
    async fn a_run_whose_place_is_taken_is_lost(lab: &AgentRunsLab) {
        let lost = lost_run(&lab.ada);
        lab.begin(lost).await.unwrap();
        lab.begin(run(&lab.eve, at(0))).await.unwrap();
        assert_eq!(lab.renew(lost, Duration::ZERO).await, RenewedRun::Held);
        lab.begin(run(&lab.ada, at(0))).await.unwrap();
        assert_eq!(lab.renew(lost, LEASE).await, RenewedRun::Lost);
    }

    /// Of racing runs as many begin as may.
    async fn racing_runs_begin_within_the_limit(lab: &AgentRunsLab) {
        let begun = (0..6).map(|_| lab.begin(run(&lab.ada, at(0))));
        let begun = join_all(begun).await;
        assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 2);
        assert_eq!(begun.iter().filter(|begun| is_refused(begun)).count(), 4);
    }

    /// A user of another organization begins no run.
    async fn a_run_needs_a_user_of_its_organization(lab: &AgentRunsLab) {
        let mixed = BeginRun {
            user: lab.eve.id,
            ..run(&lab.ada, at(0))
        };
        let begun = lab.begin(mixed).await;
        assert!(matches!(
            begun,
            Err(BeginRunError::Port(PortError::NotFound(Resource::User)))
        ));
    }

    /// A run learns that it is cancelled when it renews its lease.
    async fn a_cancelled_run_is_told_once_it_renews(lab: &AgentRunsLab) {
        let (one, other) = (run(&lab.ada, at(0)), run(&lab.ada, at(0)));
        for run in [one, other] {
            lab.begin(run).await.unwrap();
        }
        for _ in 0..2 {
            let cancelled = lab.runs.cancel(lab.ours, lab.ada.id, one.id).await;
            cancelled.unwrap();
        }
        let mut reported = Vec::new();
        for run in [one, other] {
            reported.push(lab.renew(run, LEASE).await);
        }
        assert_eq!(reported, [RenewedRun::CancelRequested, RenewedRun::Held]);
        lab.end(one).await;
        assert_eq!(lab.renew(one, LEASE).await, RenewedRun::Lost);
    }

    /// A follower of a run wakes when that run is cancelled.
    async fn cancelling_wakes_the_follower_of_the_run(lab: &AgentRunsLab) {
        let run = run(&lab.ada, at(0));
        lab.begin(run).await.unwrap();
        let mut follower = lab.runs.follow(run.id);
        // A subscription may begin with news that are none.
        while follower.next().now_or_never().is_some() {}
        let cancelled = lab.runs.cancel(lab.ours, lab.ada.id, run.id).await;
        cancelled.unwrap();
        follower.next().await;
    }

    /// A run that ended, whose lease has ended, or that is another user's or organization's is not found.
    async fn only_its_user_cancels_a_run_in_progress(lab: &AgentRunsLab) {
        let colleague = lab.user(lab.ours, "grace@example.org").await;
        let run = run(&lab.ada, at(0));
        lab.begin(run).await.unwrap();
        let cancel = async |of: &User, user: UserId, run: BeginRun| {
            lab.runs.cancel(of.organization, user, run.id).await
        };
        assert_not_found(cancel(&lab.eve, lab.eve.id, run).await);
        assert_not_found(cancel(&lab.ada, colleague.id, run).await);
        lab.runs.end(lab.theirs, run.id).await.unwrap();
        cancel(&lab.ada, lab.ada.id, run).await.unwrap();
        lab.end(run).await;
        assert_not_found(cancel(&lab.ada, lab.ada.id, run).await);
        let lost = lost_run(&lab.ada);
        lab.begin(lost).await.unwrap();
        assert_not_found(cancel(&lab.ada, lab.ada.id, lost).await);
    }

    /// Tokens are summed by organization and month.
    async fn tokens_add_up_by_organization_and_month(lab: &AgentRunsLab) {
        let this = UsageMonth::of(at(0));
        let next = UsageMonth::of(this.end());
        assert_eq!(
            lab.add_usage(lab.ours, this, usage(10, 5)).await,
            usage(10, 5)
        );
        assert_eq!(
            lab.add_usage(lab.ours, this, usage(3, 2)).await,
            usage(13, 7)
        );
        assert_eq!(
            lab.add_usage(lab.ours, next, usage(1, 1)).await,
            usage(1, 1)
        );
        assert_eq!(
            lab.add_usage(lab.theirs, this, usage(2, 2)).await,
            usage(2, 2)
        );
        let read = lab.runs.usage(lab.ours, this).await;
        assert_eq!(read.unwrap(), usage(13, 7));
        let read = lab.runs.usage(lab.theirs, next).await;
        assert_eq!(read.unwrap(), usage(0, 0));
        let unknown = given::uuid().into();
        let added = lab.runs.add_usage(unknown, this, usage(1, 1)).await;
        assert_not_found(added);
    }

    /// No token of racing runs is lost.
    async fn racing_tokens_all_count(lab: &AgentRunsLab) {
        let month = UsageMonth::of(at(0));
        join_all((0..8).map(|_| lab.add_usage(lab.ours, month, usage(2, 1)))).await;
        let sum = lab.runs.usage(lab.ours, month).await;
        assert_eq!(sum.unwrap(), usage(16, 8));
    }

    /// A decision sees the tokens of the month in which the run begins.
    async fn the_tokens_of_a_month_decide_on_a_run(lab: &AgentRunsLab) {
        let this = UsageMonth::of(at(0));
        lab.add_usage(lab.ours, this, usage(60, 40)).await;
        let begin = async |now| {
            let limits = AgentLimits {
                monthly_tokens: Some(100),
                ..AgentLimits::default()
            };
            let decide = move |facts| limits.check_start(facts, now);
            lab.runs.begin(run(&lab.ada, now), &decide).await
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
);
