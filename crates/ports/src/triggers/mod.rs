//! Triggers and the outbox of events.

use async_trait::async_trait;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    triggers::{BackfillFiles, Candidate, StoredUpload, TriggerEvent},
    work::NewRun,
};
use time::OffsetDateTime;

use crate::{PortError, work::Wakeups};

/// Result of one call to a [`TriggerStore`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    /// Number of events or ticks that were handled.
    pub handled: u32,
    /// Number of runs that were queued.
    pub runs: u32,
}

/// Decision about an event: the runs to queue. It MUST depend on its argument alone, except for the
/// ids of new runs, because a store may call it again for the same event.
pub type DecideEvent<'a> = &'a (dyn Fn(TriggerEvent<'_>) -> Vec<NewRun> + Send + Sync);

/// Decision about a tick of a candidate's schedule. The conditions of [`DecideEvent`] apply.
pub type DecideTick<'a> = &'a (dyn Fn(&Candidate) -> TickDecision + Send + Sync);

/// Decision about a stored file: the run to queue; `None` to leave the file out. The conditions of
/// [`DecideEvent`] apply.
pub type DecideBackfill<'a> = &'a (dyn Fn(&StoredUpload) -> Option<NewRun> + Send + Sync);

/// Files that a backfill of a job considers, and what follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    /// The job.
    pub job: JobId,
    /// Its files.
    pub files: BackfillFiles,
    /// Largest number of runs.
    pub limit: usize,
    /// Queues nothing.
    pub is_dry_run: bool,
}

/// Consequences of a tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TickDecision {
    /// The run to queue.
    pub run: Option<NewRun>,
    /// The next tick; `None` if there is none.
    pub next_at: Option<OffsetDateTime>,
}

/// Events, schedules, and the runs that follow from them.
///
/// Repositories record an event in the transaction of its cause: a
/// [`FileUploaded`](labdata_domain::triggers::event::EventKind::FileUploaded) exactly once for every
/// file that becomes confirmed, a
/// [`JobCompleted`](labdata_domain::triggers::event::EventKind::JobCompleted) exactly once for every
/// execution that ends, if a trigger of its organization
/// [awaits that](labdata_domain::triggers::Trigger::awaits_end_of). The event of a deleted file is
/// deleted with it.
#[async_trait]
pub trait TriggerStore: Send + Sync {
    /// Handles up to `limit` events of all organizations, oldest first: passes each with its facts
    /// to `decide`, queues the resulting runs, and deletes the events, all in one step. The facts
    /// MUST include every job whose
    /// [candidate](labdata_domain::jobs::Job::candidate) may respond to the event. However many
    /// servers call it at once, and wherever one of them dies, each event MUST be handled exactly
    /// once.
    async fn act_on_events(&self, limit: u32, decide: DecideEvent<'_>) -> Result<Fired, PortError>;

    /// Handles up to `limit` candidates whose schedules have come to a tick, longest due first:
    /// passes each to `decide`, queues the resulting run and stores the next tick, in one step. Of
    /// racing calls exactly one MUST handle a tick. Ticks that passed without a call are one tick.
    async fn fire_schedules(
        &self,
        now: OffsetDateTime,
        limit: u32,
        decide: DecideTick<'_>,
    ) -> Result<Fired, PortError>;

    /// Passes the organization's confirmed files of the request to `decide`, oldest first by the time
    /// of confirmation, then id, until `limit` runs follow or no file is left; queues the runs, in one
    /// step, unless it is a dry run; returns them in that order. Of racing calls for one job each MUST
    /// see the runs that other calls queued.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the job, or a named file, is not the organization's, or a named file
    /// is not confirmed. Nothing is queued then.
    async fn backfill(
        &self,
        organization: OrganizationId,
        request: &BackfillRequest,
        decide: DecideBackfill<'_>,
    ) -> Result<Vec<NewRun>, PortError>;

    /// Subscribes to signals of new events, from all servers.
    fn subscribe(&self) -> Box<dyn Wakeups>;
}
