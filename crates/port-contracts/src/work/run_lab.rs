//! Runs of jobs for clauses.

use labdata_domain::{
    executions::Execution,
    ids::{ExecutionId, OrganizationId, UserId},
    work::{FreeSlots, RunEnd, WorkEnd, WorkKind, WorkRecord},
};
use labdata_ports::{
    files::FileRepository,
    maintenance::StoreHealth,
    notifications::NotificationRepository,
    triggers::TriggerStore,
    work::{ExpiredWork, RunKeys, Task, WorkClaim, WorkQueue},
};
use time::OffsetDateTime;

use crate::{
    lab::lab,
    work::lab::{lose, new_run, terms},
};

lab!(
    /// Runs of two organizations, and what their ends change.
    pub struct RunsLab {
        /// The queue.
        pub queue: dyn WorkQueue,
        /// Keys of runs.
        pub run_keys: dyn RunKeys,
        /// Triggers, and the events that they wait for.
        pub triggers: dyn TriggerStore,
        /// Notices of failed executions.
        pub notifications: dyn NotificationRepository,
        /// Figures of the store.
        pub health: dyn StoreHealth,
        /// Files.
        pub files: dyn FileRepository,
    }
);

/// A claimed run.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) claim: WorkClaim,
    pub(crate) execution: Execution,
    pub(crate) started_by: UserId,
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
        WorkRecord::Run(execution) => Some(*execution),
        WorkRecord::Training(version) => panic!("{version:?} is no run"),
    }
}

/// The end of a successful script.
pub(crate) fn completed() -> RunEnd {
    RunEnd {
        exit_code: Some(0),
        error: None,
    }
}

impl RunsLab {
    /// The user who starts the runs of an organization.
    pub(crate) async fn somebody(&self, organization: OrganizationId) -> UserId {
        self.user(organization, "somebody@example.org").await.id
    }

    /// A run of the organization's that waits since then.
    pub(crate) async fn queued(
        &self,
        organization: OrganizationId,
        queued_at: OffsetDateTime,
    ) -> Execution {
        let job = self.job(organization, "some job").await.id;
        let run = new_run(job, self.somebody(organization).await, queued_at);
        self.executions.queue(organization, &run).await.unwrap()
    }

    /// Claims runs at that time.
    pub(crate) async fn claim(&self, now: OffsetDateTime, limit: u32) -> Vec<Run> {
        claim_from(&*self.queue, now, limit).await
    }

    /// A run that was queued and claimed then, alone in its queue.
    pub(crate) async fn claimed(&self, organization: OrganizationId, now: OffsetDateTime) -> Run {
        let queued = self.queued(organization, now).await;
        let claimed = self.claim(now, 1).await.remove(0);
        assert_eq!(claimed.execution.id, queued.id);
        claimed
    }

    /// Ends a run; returns its execution if the claim held it.
    pub(crate) async fn finish(
        &self,
        claim: WorkClaim,
        end: &RunEnd,
        now: OffsetDateTime,
    ) -> Option<Execution> {
        finish(&*self.queue, claim, end, now).await
    }

    /// Takes a run from its holder at that time.
    pub(crate) async fn lose(&self, claim: WorkClaim, now: OffsetDateTime) -> ExpiredWork {
        lose(&*self.queue, claim, now).await
    }

    /// Cancels an execution of ours.
    pub(crate) async fn cancel(&self, id: ExecutionId, now: OffsetDateTime) -> Execution {
        self.executions.cancel(self.ours, id, now).await.unwrap()
    }

    /// The execution of a claimed run as it is stored.
    pub(crate) async fn stored(&self, claim: WorkClaim) -> Execution {
        let stored = self.executions.get(claim.organization, execution_of(claim));
        stored.await.unwrap()
    }
}
