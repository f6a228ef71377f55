//! Tokens, reports and backends of trainings in memory.

use async_trait::async_trait;
use labdata_domain::{
    events::LoggedEventKind,
    files::ObjectKey,
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::{ModelVersion, ReportTokenHash, TrainingBackend, TrainingReport},
    notifications::has_training_notice,
    work::WorkId,
};
use labdata_ports::{
    PortError,
    models::{ExchangedTraining, Reported, TrainingStore},
    work::WorkClaim,
};
use time::OffsetDateTime;

use crate::{
    memory::{State, fake},
    notifications::rows::{NoticeRow, NoticeSubject},
    work::rows::WorkRow,
};

fake!(
    /// Tokens, reports and backends of trainings in memory.
    pub struct InMemoryTrainingStore;
);

impl State {
    /// The row of a training that reports with that token.
    fn reporting(
        &mut self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Option<&mut WorkRow> {
        let row = self.work.get_mut(&WorkId::Training(version));
        row.filter(|row| row.has_token(token))
    }

    /// Stores the end of a training, with its event and notice.
    pub(crate) fn store_training_end(
        &mut self,
        organization: OrganizationId,
        version: &ModelVersion,
        now: OffsetDateTime,
    ) {
        if let Some(row) = self.version_mut(version.version) {
            row.version = version.clone();
        }
        self.leave_queue(WorkId::Training(version.version), now);
        if let Some(kind) = LoggedEventKind::of_training(version) {
            self.log_event(organization, now, kind);
        }
        if has_training_notice(version) {
            self.notices.push(NoticeRow {
                organization,
                subject: NoticeSubject::Training(version.version),
                recorded_at: now,
            });
        }
    }

    /// Cancels the versions of a model that are in flight; returns how many they were.
    pub(crate) fn cancel_trainings(
        &mut self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> usize {
        let versions = self.versions_mut(organization, model);
        let cancelled = versions.filter_map(|row| row.version.clone().cancel(now));
        let cancelled: Vec<ModelVersion> = cancelled.collect();
        for version in &cancelled {
            self.store_training_end(organization, version, now);
        }
        cancelled.len()
    }
}

#[async_trait]
impl TrainingStore for InMemoryTrainingStore {
    async fn begin(
        &self,
        claim: WorkClaim,
        token: ReportTokenHash,
        artifact: ObjectKey,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let Some(row) = state.held(claim) else {
            return Ok(false);
        };
        row.token = Some(token);
        row.reported = Reported {
            artifact: Some(artifact),
            ..Reported::default()
        };
        Ok(true)
    }

    async fn holder(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Result<Option<OrganizationId>, PortError> {
        let mut state = self.memory.lock();
        Ok(state.reporting(version, token).map(|row| row.organization))
    }

    async fn exchange_token(
        &self,
        version: ModelVersionId,
        presented: ReportTokenHash,
        fresh: ReportTokenHash,
    ) -> Result<Option<ExchangedTraining>, PortError> {
        let mut state = self.memory.lock();
        let dataset = state.version_mut(version).map(|row| row.version.dataset);
        let row = state.reporting(version, presented);
        Ok(row.and_then(|row| {
            row.token = Some(fresh);
            Some(ExchangedTraining {
                organization: row.organization,
                dataset: dataset?,
                artifact: row.reported.artifact?,
            })
        }))
    }

    async fn report(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
        report: &TrainingReport,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let Some(row) = state.reporting(version, token) else {
            return Ok(false);
        };
        match report.clone() {
            TrainingReport::Result(result) => row.reported.result = Some(*result),
            TrainingReport::Error(error) => row.reported.error = Some(error),
            TrainingReport::Progress(progress) => {
                if let Some(row) = state.version_mut(version) {
                    row.version.progress = Some(progress);
                }
            }
        }
        state.signal_followers(version.as_uuid());
        Ok(true)
    }

    async fn reported(&self, claim: WorkClaim) -> Result<Option<Reported>, PortError> {
        let mut state = self.memory.lock();
        Ok(state.held(claim).map(|row| row.reported.clone()))
    }

    async fn record_backend(&self, backend: &TrainingBackend) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let record = backend.clone();
        state.training_backends.insert(backend.worker, record);
        Ok(())
    }

    async fn backends(&self) -> Result<Vec<TrainingBackend>, PortError> {
        let state = self.memory.lock();
        Ok(state.training_backends.values().cloned().collect())
    }
}
