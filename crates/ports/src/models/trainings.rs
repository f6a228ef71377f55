//! Records of trainings besides their place in the queue: tokens, reports and backends.

use async_trait::async_trait;
use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelVersionId, OrganizationId},
    models::{ReportTokenHash, TrainingBackend, TrainingError, TrainingReport, TrainingResult},
};

use crate::{PortError, work::WorkClaim};

/// Running training whose token was exchanged, and the objects that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangedTraining {
    /// The organization.
    pub organization: OrganizationId,
    /// The dataset that it learns from.
    pub dataset: DatasetId,
    /// The object that it may upload.
    pub artifact: ObjectKey,
}

/// Reports of the current attempt at a training so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// The object that it may upload, once it has begun.
    pub artifact: Option<ObjectKey>,
    /// The last result that it reported.
    pub result: Option<TrainingResult>,
    /// The last error that it reported.
    pub error: Option<TrainingError>,
}

/// Tokens and reports of running trainings, and the state of the backends that train.
///
/// The report token and the object of the artifact are those of the lease
/// ([`WorkQueue`](crate::work::WorkQueue)) and MUST be deleted with it.
#[async_trait]
pub trait TrainingStore: Send + Sync {
    /// Stores the hash of the token with which the training reports, and the object that it may upload,
    /// unless the training was taken from the holder; returns whether it did. Earlier reports are deleted. The
    /// object counts as referenced until the lease no longer exists.
    async fn begin(
        &self,
        claim: WorkClaim,
        token: ReportTokenHash,
        artifact: ObjectKey,
    ) -> Result<bool, PortError>;

    /// The organization of the version that is held under a lease with that token, if it is.
    async fn holder(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Result<Option<OrganizationId>, PortError>;

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

    /// Reports of the holder's training so far; `None` when it was taken from the holder.
    async fn reported(&self, claim: WorkClaim) -> Result<Option<Reported>, PortError>;

    /// Records the state of a worker's training backend in place of its earlier record. Records older
    /// than [`TRAINING_BACKEND_LIFETIME`](labdata_domain::models::TRAINING_BACKEND_LIFETIME) may be
    /// removed.
    async fn record_backend(&self, backend: &TrainingBackend) -> Result<(), PortError>;

    /// The recorded training backends, for
    /// [`check_backends`](labdata_domain::models::check_backends).
    async fn backends(&self) -> Result<Vec<TrainingBackend>, PortError>;
}
