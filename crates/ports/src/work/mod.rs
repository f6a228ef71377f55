//! The queue of work on the platform: runs of job scripts, and trainings of models.

mod keys;
pub mod logs;
pub mod runner;

use async_trait::async_trait;
use labdata_domain::{
    executions::Execution,
    ids::{ExecutionId, OrganizationId, TriggerId, UserId},
    models::{Dataset, ModelVersion},
    people::scope::Scopes,
    work::{FreeSlots, Lease, WorkEnd, WorkId, WorkKind, WorkRecord},
};
use time::{Duration, OffsetDateTime};

pub use keys::{NonceUse, RunKeys};

use crate::{PortError, work::runner::RunId};

/// A worker's claim to work. Each claim of the same work has another number, so that calls of an
/// earlier holder can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkClaim {
    /// The organization.
    pub organization: OrganizationId,
    /// The work.
    pub work: WorkId,
    /// The number of the claim, from 1.
    pub attempt: u32,
}

impl WorkClaim {
    /// Returns the run of the claim, as runners call it.
    #[must_use]
    pub const fn run(self) -> RunId {
        RunId {
            work: self.work,
            attempt: self.attempt,
        }
    }
}

/// Work that a worker has claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedWork {
    /// The claim.
    pub claim: WorkClaim,
    /// Task of the claim.
    pub task: Task,
}

/// Task of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Run a script.
    Run(Box<ClaimedRun>),
    /// Train a model.
    Training(Box<ClaimedTraining>),
}

impl Task {
    /// Returns the execution that a run retries.
    #[must_use]
    pub fn retry_of(&self) -> Option<ExecutionId> {
        match self {
            Self::Run(run) => run.execution.retry_of(),
            Self::Training(_) => None,
        }
    }
}

/// A run that a worker has claimed, running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRun {
    /// The execution; its origin is [`labdata_domain::executions::Origin::Platform`].
    pub execution: Execution,
    /// The user who started it, or set its trigger.
    pub started_by: UserId,
    /// The trigger that fired, if any.
    pub trigger: Option<TriggerId>,
    /// Scopes of its key.
    pub scopes: Scopes,
}

/// A training that a worker has claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedTraining {
    /// The version, which is training.
    pub version: ModelVersion,
    /// The dataset that it learns from.
    pub dataset: Dataset,
}

/// Terms of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// When the work starts, for its record.
    pub now: OffsetDateTime,
    /// Duration of the lease.
    pub lease: Duration,
    /// Time after `now` until the deadline of a run. Trainings have none.
    pub timeout: Duration,
}

/// Work that a worker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldWork {
    /// The organization.
    pub organization: OrganizationId,
    /// The work.
    pub work: WorkId,
    /// Its lease.
    pub lease: Lease,
}

/// Work whose worker gave no sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWork {
    /// The work, and the lease that has ended.
    pub held: HeldWork,
    /// Id for the execution that retries it, if it is a run.
    pub retry: ExecutionId,
}

/// Work that was taken from its workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpiredWork {
    /// Amount of work that is tried again: trainings that returned to the queue, and runs that another execution
    /// retries.
    pub requeued: u32,
    /// Work that had lost a worker before, and has failed.
    pub failed: Vec<WorkRecord>,
}

/// Signals that a subscriber may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkNews {
    /// Work waits for a worker.
    Queued,
    /// Work has ended, was cancelled, or was taken from its worker.
    Ended,
}

/// A subscription to news.
#[async_trait]
pub trait Wakeups: Send {
    /// Waits for news that came since the last call, or since the subscription began. News may be
    /// announced that are none, and several may come as one; after the store was out of reach they
    /// may be lost, so subscribers also poll.
    async fn next(&mut self);
}

/// Work that waits, and who holds what runs. Work gets into the queue with its record
/// ([`ExecutionRepository::queue`](crate::executions::ExecutionRepository::queue),
/// [`ModelRepository::create`](crate::models::ModelRepository::create)), and is cancelled with it.
///
/// Work is held under a *lease*, which its worker renews. It has ended when
/// [`LeaseWatch`](labdata_domain::work::LeaseWatch) says so. Calls of a holder MUST be refused once it has
/// lost the work: it ended, was cancelled or released, or [`WorkQueue::expire`] took it.
/// Of an end, a cancellation and the loss of the worker that race exactly one MUST win.
///
/// When a lease ends, what was issued for it MUST end in the same step: keys of a run are revoked and its
/// nonce is deleted, and so are the token and the object of a training. When work ends, its event
/// ([`crate::triggers::TriggerStore`]) and its notice
/// ([`NotificationRepository::deliver_notices`](crate::notifications::NotificationRepository::deliver_notices))
/// MUST be recorded in that step, and a version that is ready becomes active by
/// [`becomes_active`](labdata_domain::models::becomes_active).
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Takes waiting work of a kind, of all organizations, for the free slots of a worker: it runs from
    /// now on, held until the lease ends. Of racing calls, from all servers, one MUST get each.
    ///
    /// Organizations take turns: the work is next whose organization has the least running of that kind, and
    /// of that the oldest. A long queue of one organization does not delay another by more
    /// than the time until a worker becomes free, and [`labdata_domain::work::next_work`] reserves
    /// slots for organizations without running work.
    async fn claim(
        &self,
        kind: WorkKind,
        slots: FreeSlots,
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimedWork>, PortError>;

    /// Holds the work for that time from now; returns whether it still is the holder's. No time
    /// [gives it up](labdata_domain::work::Lease::GIVEN_UP). It MUST NOT wait for writes that are recorded under an execution, nor for reports of a training.
    async fn renew(&self, claim: WorkClaim, lease: Duration) -> Result<bool, PortError>;

    /// Ends the work as its holder found it; `None` when it was taken from the holder.
    async fn finish(
        &self,
        claim: WorkClaim,
        end: &WorkEnd,
        now: OffsetDateTime,
    ) -> Result<Option<WorkRecord>, PortError>;

    /// Returns the work to the queue, where another worker starts it again; returns whether the claim
    /// still held it. It does not count as the loss of a worker.
    async fn release(&self, claim: WorkClaim, now: OffsetDateTime) -> Result<bool, PortError>;

    /// Returns all work that is held, of any kind.
    async fn held(&self) -> Result<Vec<HeldWork>, PortError>;

    /// Takes that work from its holders, unless a lease has changed since, by
    /// [`WorkRecord::lose_worker`]: a training returns to the queue, and a run fails and another execution
    /// retries it, unless either has [no further attempt](labdata_domain::work::has_another_attempt).
    ///
    /// The failed run and its retry MUST be stored in one step. The retry has the starter and the scopes of the
    /// failed one and its place in the queue, and attempts count on. MUST be safe to call from several servers
    /// at once.
    async fn expire(
        &self,
        now: OffsetDateTime,
        lost: &[LostWork],
    ) -> Result<ExpiredWork, PortError>;

    /// Subscribes to signals of a kind of work, from all servers.
    fn subscribe(&self, kind: WorkKind, news: WorkNews) -> Box<dyn Wakeups>;

    /// Subscribes to every change of work, from all servers: its log, reported progress, and its end; of a
    /// training also its start. The end of an execution that never ran need not be signaled.
    fn follow(&self, work: WorkId) -> Box<dyn Wakeups>;
}
