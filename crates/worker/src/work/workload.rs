//! What differs between the kinds of work that a worker does.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use labdata_application::{
    Error, Ports, subscription::Subscription, work::renew_lease::LeasedClaim,
};
use labdata_domain::work::FreeSlots;
use labdata_ports::work::runner::{JobRunner, RunId, RunSpec, ScriptEnd};

/// Backend of a kind of work, and how a worker uses it.
#[derive(Clone)]
pub struct BackendSettings {
    /// Backend that runs scripts.
    pub runner: Arc<dyn JobRunner>,
    /// Maximum number of concurrent runs.
    pub concurrency: u32,
    /// Time for which the backend may be unavailable. After it, a run that has not begun fails, and
    /// one that has begun is lost and tried once more.
    pub timeout: Duration,
}

/// Default of [`BackendSettings::timeout`].
pub const PATIENCE: Duration = Duration::from_secs(30);

impl fmt::Debug for BackendSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendSettings")
            .field("concurrency", &self.concurrency)
            .field("patience", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Outcome of the preparation of a run.
pub(crate) enum Begun<E> {
    /// It can be submitted.
    Ready(Box<RunSpec>),
    /// The worker has lost the work.
    Lost,
    /// It does not run, and ends so.
    Ended(E),
}

/// Why a run did not begin.
pub(crate) enum NotBegun {
    /// The platform could not put it together.
    NotAssembled,
    /// The backend could not take it.
    NotSubmitted(String),
    /// The backend refuses it.
    Refused(String),
}

/// What the end of a script means.
pub(crate) enum Interpretation<E> {
    /// The work ends so.
    Ended(E),
    /// The backend lost the run; another attempt may succeed.
    LostByBackend,
    /// The worker has lost the work.
    LostByWorker,
}

/// Destination of what a script writes.
#[async_trait]
pub(crate) trait WorkLog: Send {
    /// Stores what the script has written since the last call. After an error, the next call
    /// continues.
    async fn catch_up(&mut self, ports: &Ports, runner: &dyn JobRunner);

    /// Stores the rest of the log; retries after errors.
    async fn finish(&mut self, ports: &Ports, runner: &dyn JobRunner);

    /// Appends a line of the platform.
    async fn append_notice(&self, ports: &Ports, text: &str);
}

/// A kind of work: a queue of it, and what its runs are.
#[async_trait]
pub(crate) trait Workload: Send + Sync + 'static {
    /// Claim to one chunk of work.
    type Claim: LeasedClaim;
    /// Work that was claimed.
    type Claimed: Send + Sync + 'static;
    /// End of the work.
    type End: Send + Sync;
    /// Its log.
    type Log: WorkLog;

    /// Returns the backend.
    fn backend(&self) -> &BackendSettings;

    /// Returns the claim.
    fn claim_of(&self, claimed: &Self::Claimed) -> Self::Claim;

    /// Returns the id of the run.
    fn run_of(&self, claimed: &Self::Claimed) -> RunId;

    /// Opens the log of a run that begins.
    fn open_log(&self, claimed: &Self::Claimed) -> Self::Log;

    /// Subscribes to work that is queued.
    fn watch_queued(&self, ports: &Ports) -> Subscription;

    /// Subscribes to work that ends, is cancelled or is taken from its worker.
    fn watch_ended(&self, ports: &Ports) -> Subscription;

    /// Claims work for free slots.
    async fn claim(&self, ports: &Ports, slots: FreeSlots) -> Result<Vec<Self::Claimed>, Error>;

    /// Puts a run together.
    async fn begin(
        &self,
        ports: &Ports,
        claimed: &Self::Claimed,
    ) -> Result<Begun<Self::End>, Error>;

    /// Returns the end of work whose run did not begin.
    fn not_begun(&self, reason: NotBegun) -> Self::End;

    /// Finds out what the end of a script means. `prepared` is true if its dependencies were installed.
    async fn interpret(
        &self,
        ports: &Ports,
        claimed: &Self::Claimed,
        end: &ScriptEnd,
        prepared: bool,
    ) -> Result<Interpretation<Self::End>, Error>;

    /// Records the end; returns false if the worker has lost the work.
    async fn record(
        &self,
        ports: &Ports,
        claimed: &Self::Claimed,
        end: &Self::End,
    ) -> Result<bool, Error>;

    /// Puts the work back into the queue.
    async fn release(&self, ports: &Ports, claimed: &Self::Claimed) -> Result<bool, Error>;
}
