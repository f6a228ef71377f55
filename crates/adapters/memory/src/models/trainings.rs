//! The queue of trainings in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::channel::mpsc;
use labdata_domain::{
    events::LoggedEventKind,
    files::ObjectKey,
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::{
        ModelVersion, NothingInFlight, ReportTokenHash, TrainingBackend, TrainingEnd,
        TrainingReport, VersionState, becomes_active,
    },
    notifications::has_training_notice,
    refusal::Resource,
    work::{FreeSlots, LostWorker, WaitingRun, next_runs},
};
use labdata_ports::{
    PortError,
    models::{
        CancelTrainingError, ClaimedTraining, ExchangedTraining, ExpiredTrainings, FailedTraining,
        Reported, TrainingClaim, TrainingQueue,
    },
    work::{RunNews, Wakeups},
};
use time::{Duration, OffsetDateTime};

use crate::{
    Memory,
    memory::{State, owned},
    models::rows::{Attempt, VersionRow},
    notifications::rows::{NoticeRow, NoticeSubject},
    work::subscribers::{Subscriber, Subscription},
};

/// The queue of trainings in memory.
#[derive(Clone, Debug)]
pub struct InMemoryTrainingQueue {
    memory: Memory,
}

impl InMemoryTrainingQueue {
    /// The queue over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    pub(crate) fn signal_trainings(&mut self, news: RunNews) {
        self.training_subscribers.retain(|subscriber| {
            subscriber.news != news || subscriber.sender.unbounded_send(()).is_ok()
        });
    }

    /// The row of a version that the claim holds.
    fn held(&mut self, claim: TrainingClaim) -> Option<&mut VersionRow> {
        self.version_mut(claim.version)
            .filter(|row| row.claims.is_held_by(claim.attempt))
    }

    /// Number of running trainings of each organization.
    fn trainings_by_organization(&self) -> BTreeMap<OrganizationId, u64> {
        let mut running = BTreeMap::new();
        for row in &self.model_versions {
            if row.thing.claims.is_held() {
                *running.entry(row.organization).or_default() += 1;
            }
        }
        running
    }

    /// Stores another state of a version whose training stops running, and ends its lease.
    fn store_stopped(&mut self, version: &ModelVersion) {
        if let Some(row) = self.version_mut(version.version) {
            row.version = version.clone();
            row.release();
        }
        self.signal_trainings(RunNews::Ended);
        if version.state.is_in_flight() {
            self.signal_trainings(RunNews::Queued);
        }
        self.signal_followers(version.version.as_uuid());
    }

    /// Stores the end of a training, with its notice.
    fn store_training_end(
        &mut self,
        organization: OrganizationId,
        version: &ModelVersion,
        now: OffsetDateTime,
    ) {
        self.store_stopped(version);
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
impl TrainingQueue for InMemoryTrainingQueue {
    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        slots: FreeSlots,
    ) -> Result<Vec<ClaimedTraining>, PortError> {
        let mut guard = self.memory.lock();
        let state = &mut *guard;
        let pending = state
            .model_versions
            .iter()
            .filter(|row| row.thing.version.state == VersionState::Pending);
        let waiting = pending.map(|row| WaitingRun {
            organization: row.organization,
            id: row.thing.version.version,
            queued_at: row.thing.version.requested_at,
        });
        let next = next_runs(
            waiting.collect(),
            &state.trainings_by_organization(),
            state.organizations.len() > 1,
            slots,
        );
        let mut claimed = Vec::new();
        for WaitingRun {
            organization, id, ..
        } in next
        {
            let Some(row) = state.version_mut(id) else {
                continue;
            };
            let attempt = row.claims.claim(now + lease);
            row.attempt = Attempt::default();
            if let Some(training) = row.version.state.clone().claim(now) {
                row.version.state = training;
            }
            let version = row.version.clone();
            let dataset = owned(&state.datasets, organization)
                .find(|dataset| dataset.id == version.dataset)
                .ok_or(PortError::NotFound(Resource::Dataset))?
                .clone();
            state.signal_followers(id.as_uuid());
            claimed.push(ClaimedTraining {
                claim: TrainingClaim {
                    organization,
                    version: id,
                    attempt,
                },
                version,
                dataset,
            });
        }
        Ok(claimed)
    }

    async fn begin(
        &self,
        claim: TrainingClaim,
        token: ReportTokenHash,
        artifact: ObjectKey,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let Some(row) = state.held(claim) else {
            return Ok(false);
        };
        row.attempt = Attempt {
            token: Some(token),
            artifact: Some(artifact),
            reported: Reported::default(),
        };
        Ok(true)
    }

    async fn holder(
        &self,
        version: ModelVersionId,
        token: ReportTokenHash,
    ) -> Result<Option<TrainingClaim>, PortError> {
        let state = self.memory.lock();
        let row = state
            .model_versions
            .iter()
            .find(|row| row.thing.version.version == version);
        let held = row.filter(|row| {
            let own = row.thing.attempt.token;
            own.is_some_and(|own| own.matches(&token))
        });
        Ok(held.and_then(|row| {
            Some(TrainingClaim {
                organization: row.organization,
                version,
                attempt: row.thing.claims.held_attempt()?,
            })
        }))
    }

    async fn exchange_token(
        &self,
        version: ModelVersionId,
        presented: ReportTokenHash,
        fresh: ReportTokenHash,
    ) -> Result<Option<ExchangedTraining>, PortError> {
        let Some(claim) = self.holder(version, presented).await? else {
            return Ok(None);
        };
        let mut state = self.memory.lock();
        let held = state.held(claim);
        // Another call may have been faster.
        let held = held.filter(|row| row.attempt.token.is_some_and(|own| own.matches(&presented)));
        Ok(held.and_then(|row| {
            let artifact = row.attempt.artifact?;
            row.attempt.token = Some(fresh);
            Some(ExchangedTraining {
                claim,
                dataset: row.version.dataset,
                artifact,
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
        let row = state.version_mut(version);
        let held = row.filter(|row| row.attempt.token.is_some_and(|own| own.matches(&token)));
        let Some(row) = held else {
            return Ok(false);
        };
        match report.clone() {
            TrainingReport::Progress(progress) => row.version.progress = Some(progress),
            TrainingReport::Result(result) => row.attempt.reported.result = Some(*result),
            TrainingReport::Error(error) => row.attempt.reported.error = Some(error),
        }
        state.signal_followers(version.as_uuid());
        Ok(true)
    }

    async fn reported(&self, claim: TrainingClaim) -> Result<Option<Reported>, PortError> {
        let mut state = self.memory.lock();
        Ok(state.held(claim).map(|row| row.attempt.reported.clone()))
    }

    async fn renew(&self, claim: TrainingClaim, until: OffsetDateTime) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let row = state.held(claim);
        let lease = row.and_then(|row| row.claims.lease_mut(claim.attempt));
        Ok(lease.map(|lease| lease.expires_at = until).is_some())
    }

    async fn finish(
        &self,
        claim: TrainingClaim,
        end: &TrainingEnd,
        now: OffsetDateTime,
    ) -> Result<Option<ModelVersion>, PortError> {
        let mut state = self.memory.lock();
        let Some(row) = state.held(claim) else {
            return Ok(None);
        };
        let Some(mut ended) = row.version.clone().end(end, now) else {
            return Ok(None);
        };
        if let TrainingEnd::Ready(result, _) = end {
            row.result = Some((**result).clone());
            let (model, number) = (ended.model, ended.number);
            let active = state
                .versions_mut(claim.organization, model)
                .find(|row| row.version.is_active)
                .map(|row| row.version.number);
            ended.is_active = becomes_active(number, active);
            if ended.is_active {
                state.activate_version(claim.organization, model, number);
            }
        }
        state.store_training_end(claim.organization, &ended, now);
        Ok(Some(ended))
    }

    async fn release(&self, claim: TrainingClaim) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let held = state.held(claim).map(|row| row.version.clone());
        let Some(pending) = held.and_then(ModelVersion::requeue) else {
            return Ok(false);
        };
        state.store_stopped(&pending);
        Ok(true)
    }

    async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredTrainings, PortError> {
        let mut state = self.memory.lock();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let lost: Vec<(OrganizationId, ModelVersion)> = state
            .model_versions
            .iter()
            .filter(|row| row.thing.claims.is_lost(now))
            .map(|row| (row.organization, row.thing.version.clone()))
            .take(limit)
            .collect();
        let mut expired = ExpiredTrainings::default();
        for (organization, version) in lost {
            let Some(row) = state.version_mut(version.version) else {
                continue;
            };
            match row.claims.lose_worker() {
                LostWorker::Requeue => {
                    if let Some(pending) = version.requeue() {
                        state.store_stopped(&pending);
                        expired.requeued += 1;
                    }
                }
                LostWorker::Fail(_) => {
                    if let Some(version) = version.lose(now) {
                        state.store_training_end(organization, &version, now);
                        expired.failed.push(FailedTraining {
                            organization,
                            version,
                        });
                    }
                }
            }
        }
        Ok(expired)
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, CancelTrainingError> {
        let mut state = self.memory.lock();
        state.newest_version(organization, model)?;
        if state.cancel_trainings(organization, model, now) == 0 {
            return Err(NothingInFlight.into());
        }
        Ok(state.newest_version(organization, model)?)
    }

    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
        let (sender, receiver) = mpsc::unbounded();
        let subscriber = Subscriber { news, sender };
        self.memory.lock().training_subscribers.push(subscriber);
        Box::new(Subscription(receiver))
    }

    fn follow(&self, version: ModelVersionId) -> Box<dyn Wakeups> {
        self.memory.lock().follow(version.as_uuid())
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
