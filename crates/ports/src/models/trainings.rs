//! The queue of trainings.

use async_trait::async_trait;
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId, OrganizationId},
    models::{
        Dataset, ModelVersion, NothingInFlight, ReportTokenHash, TrainingBackend, TrainingEnd,
        TrainingError, TrainingReport, TrainingResult,
    },
    work::FreeSlots,
};
use time::{Duration, OffsetDateTime};

use crate::{
    PortError,
    work::{RunNews, Wakeups},
};

/// A worker's claim to a training. Each claim of the same version has another number, so that calls of
/// an earlier holder can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrainingClaim {
    /// The organization.
    pub organization: OrganizationId,
    /// The version that is trained.
    pub version: ModelVersionId,
    /// The number of the claim, from 1.
    pub attempt: u32,
}

/// A training that a worker has claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedTraining {
    /// The claim.
    pub claim: TrainingClaim,
    /// The version, which is training.
    pub version: ModelVersion,
    /// The dataset that it learns from.
    pub dataset: Dataset,
}

/// Running training whose token was exchanged, and the objects that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangedTraining {
    /// Claim under which it runs.
    pub claim: TrainingClaim,
    /// The dataset that it learns from.
    pub dataset: DatasetId,
    /// The object that it may upload.
    pub artifact: ObjectKey,
}

/// Last result and last error that a training reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// The result.
    pub result: Option<TrainingResult>,
    /// The error.
    pub error: Option<TrainingError>,
}

/// A training that failed because its workers were lost.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedTraining {
    /// The organization.
    pub organization: OrganizationId,
    /// The version, failed.
    pub version: ModelVersion,
}

/// Trainings whose workers gave no sign of life.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpiredTrainings {
    /// Number of trainings that returned to the queue.
    pub requeued: u32,
    /// Those that had lost a worker before, and have failed.
    pub failed: Vec<FailedTraining>,
}

/// Why no training was cancelled.
#[derive(Debug, thiserror::Error)]
pub enum CancelTrainingError {
    /// No version is in flight.
    #[error(transparent)]
    Refused(#[from] NothingInFlight),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Trainings that wait, and who holds those that run.
///
/// A training is held under a *lease*, which its worker renews. Calls of a holder MUST be refused once
/// it has lost the training: it ended, was cancelled or released, or the lease ended and
/// [`TrainingQueue::expire`] came by. The report token and the object of the artifact are those of the
/// lease and MUST be deleted with it.
///
/// Whenever a version becomes ready, it MUST become active by
/// [`becomes_active`](labdata_domain::models::becomes_active) in the same step, and the notice of its
/// end be recorded, as of a failure
/// ([`NotificationRepository::deliver_notices`](crate::notifications::NotificationRepository::deliver_notices)). Of an end, a cancellation and the loss of the worker that race exactly one MUST win.
#[async_trait]
pub trait TrainingQueue: Send + Sync {
    /// Takes waiting trainings of all organizations for the free slots of a worker: they are training
    /// from now on, held until the lease ends. Of racing calls, from all servers, one MUST get each.
    /// Organizations take turns as in [`RunQueue::claim`](crate::work::RunQueue::claim).
    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        slots: FreeSlots,
    ) -> Result<Vec<ClaimedTraining>, PortError>;

    /// Stores the hash of the token with which the training reports, and the object that it may upload,
    /// unless the training was taken from the holder; returns whether it did. The object counts as
    /// referenced until the lease no longer exists.
    async fn begin(
        &self,
        claim: TrainingClaim,
        token: ReportTokenHash,
        artifact: ObjectKey,
    ) -> Result<bool, PortError>;

    /// The claim under which the version is held with that token, if it is.
    async fn holder(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Result<Option<TrainingClaim>, PortError>;

    /// Replaces the token with a fresh one, so that the one displayed is unknown from now on; `None`, and
    /// nothing changes, unless the version is held under a lease with the token displayed. Of racing calls
    /// exactly one MUST succeed.
    async fn exchange_token(
        &self,
        version: ModelVersionId,
        presented: ReportTokenHash,
        fresh: ReportTokenHash,
    ) -> Result<Option<ExchangedTraining>, PortError>;

    /// Stores a report; returns false, and stores nothing, unless the version is held under a lease with
    /// that token. A later report of the same kind replaces an earlier one. Progress is part of the
    /// version's record.
    async fn report(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
        report: &TrainingReport,
    ) -> Result<bool, PortError>;

    /// The result and the error that the holder's training has reported so far; `None` when it was taken
    /// from the holder.
    async fn reported(&self, claim: TrainingClaim) -> Result<Option<Reported>, PortError>;

    /// Holds the training until then; returns whether it still is the holder's.
    async fn renew(&self, claim: TrainingClaim, until: OffsetDateTime) -> Result<bool, PortError>;

    /// Ends the training as its holder found it; `None` when it was taken from the holder.
    async fn finish(
        &self,
        claim: TrainingClaim,
        end: &TrainingEnd,
        now: OffsetDateTime,
    ) -> Result<Option<ModelVersion>, PortError>;

    /// Returns the training to the queue, where another worker starts it again; returns whether the claim
    /// still held it. It does not count as the loss of a worker.
    async fn release(&self, claim: TrainingClaim) -> Result<bool, PortError>;

    /// Takes trainings from holders whose lease has ended, up to `limit` of them: back into the queue, or
    /// failed when they lost [`labdata_domain::work::MAX_LOST_WORKERS`] workers. MUST be safe to call
    /// from several servers at once.
    async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredTrainings, PortError>;

    /// Cancels every version of a model that is in flight; returns the newest version.
    ///
    /// # Errors
    /// [`NothingInFlight`]; [`PortError::NotFound`] if the organization does not have the model.
    async fn cancel(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, CancelTrainingError>;

    /// Subscribes to signals of trainings, from all servers.
    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups>;

    /// Subscribes to every change of a version, from all servers: its start, progress and end.
    fn follow(&self, version: ModelVersionId) -> Box<dyn Wakeups>;

    /// Records the state of a worker's training backend in place of its earlier record. Records older
    /// than [`TRAINING_BACKEND_LIFETIME`](labdata_domain::models::TRAINING_BACKEND_LIFETIME) may be
    /// removed.
    async fn record_backend(&self, backend: &TrainingBackend) -> Result<(), PortError>;

    /// The recorded training backends, for
    /// [`check_backends`](labdata_domain::models::check_backends).
    async fn backends(&self) -> Result<Vec<TrainingBackend>, PortError>;
}
