//! The queue of runs on the platform.

pub mod logs;
pub mod runner;

use async_trait::async_trait;
use labdata_domain::{
    executions::{CancelError, Execution},
    ids::{ExecutionId, OrganizationId, UserId},
    people::{ApiKey, run_nonce::RunNonce},
    work::{FreeSlots, NewRun, RunEnd},
};
use time::{Duration, OffsetDateTime};

use crate::{PortError, executions::OverdueExecution};

/// A worker's claim to a run. Each claim of the same run has another number, so that calls of an
/// earlier holder can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunClaim {
    /// The organization.
    pub organization: OrganizationId,
    /// The run's execution.
    pub execution: ExecutionId,
    /// The number of the claim, from 1.
    pub attempt: u32,
}

/// A run that a worker has claimed, running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRun {
    /// The hold on it.
    pub claim: RunClaim,
    /// The execution; its origin is [`labdata_domain::executions::Origin::Platform`].
    pub execution: Execution,
    /// The user in whose name it runs.
    pub started_by: UserId,
}

/// Runs whose workers gave no sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpiredRuns {
    /// Number of runs that returned to the queue.
    pub requeued: u32,
    /// Those that had lost a worker before, and have failed.
    pub failed: Vec<OverdueExecution>,
}

/// Why an execution was not cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelExecutionError {
    /// Its state forbids it.
    #[error(transparent)]
    Refused(#[from] CancelError),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Outcome of the use of a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceUse {
    /// It was used for the first time; the key is stored.
    First,
    /// It was used before; the run's keys are revoked.
    Repeated,
    /// The run was taken from the holder, and the nonce with it.
    RunLost,
}

/// Signals that a subscriber may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunNews {
    /// A run waits for a worker.
    Queued,
    /// A run has ended, was cancelled, or was taken from its worker.
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

/// Runs that wait, and who holds those that run.
///
/// A run is held under a *lease*, which its worker renews. Calls of a holder MUST
/// be refused once it has lost the run: it ended, was cancelled or released, or the
/// lease ended and [`RunQueue::expire`] came by.
///
/// Whenever an execution stops running, its API keys MUST be revoked and its nonce removed in the same step. If it ended,
/// its event MUST be recorded in that step, as [`crate::triggers::TriggerStore`] says.
#[async_trait]
pub trait RunQueue: Send + Sync {
    /// Queues a run of an existing job of the organization.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when job or user are not the organization's.
    async fn enqueue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError>;

    /// Takes waiting runs of all organizations for the free slots of a worker: they are running from now on, with
    /// that timeout, and held until the lease ends. Of racing calls, from all servers, one
    /// MUST get each run.
    ///
    /// Organizations take turns: the run is next whose organization has the fewest running, and of
    /// those the oldest. A long queue of one organization does not delay another by more
    /// than the time until a worker becomes free, and [`labdata_domain::work::next_runs`] reserves
    /// slots for organizations without a running run.
    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        timeout: Duration,
        slots: FreeSlots,
    ) -> Result<Vec<ClaimedRun>, PortError>;

    /// Stores a key of that run, unless the run was taken from the holder; tells whether it did.
    /// A key that is stored after that would never be revoked.
    async fn issue_key(&self, claim: RunClaim, key: &ApiKey) -> Result<bool, PortError>;

    /// Stores the nonce of a run, unless the run was taken from the holder; tells whether it did. It replaces
    /// an earlier nonce of the run.
    async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError>;

    /// Marks the nonce of a claim as used at the key's creation time and stores the key, in one step. Of
    /// racing calls, from all servers, one MUST be the first. Every other MUST revoke the run's keys.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the key's prefix is taken; the nonce is then not used.
    async fn redeem_nonce(&self, claim: RunClaim, key: &ApiKey) -> Result<NonceUse, PortError>;

    /// Holds the run until then; tells whether it still is the holder's. It MUST NOT wait for
    /// writes that are recorded under the execution.
    async fn renew(&self, claim: RunClaim, until: OffsetDateTime) -> Result<bool, PortError>;

    /// Ends the run as its holder found it; `None` when it was taken from the holder.
    async fn finish(
        &self,
        claim: RunClaim,
        end: &RunEnd,
        now: OffsetDateTime,
    ) -> Result<Option<Execution>, PortError>;

    /// Returns the run to the queue, where another worker starts it again; returns whether the claim
    /// still held it. It does not count as the loss of a worker.
    async fn release(&self, claim: RunClaim, now: OffsetDateTime) -> Result<bool, PortError>;

    /// Takes runs from holders whose lease has ended, up to `limit` of them: back into the queue,
    /// or failed when they lost [`labdata_domain::work::MAX_LOST_WORKERS`] workers. MUST be safe to
    /// call from several servers at once.
    async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredRuns, PortError>;

    /// Cancels an execution of any origin, by
    /// [`labdata_domain::executions::Execution::cancel`]. Of a racing end and a cancel exactly one
    /// MUST win.
    ///
    /// # Errors
    /// [`PortError::NotFound`], or the state's refusal.
    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError>;

    /// Subscribes to signals of runs, from all servers.
    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups>;
}
