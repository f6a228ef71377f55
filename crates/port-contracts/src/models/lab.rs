//! Models and trainings for clauses.

use labdata_domain::{
    ids::{ModelId, ModelVersionId, OrganizationId, UserId},
    models::{ModelVersion, NewModel, NewVersion, ReportTokenHash, TrainingEnd},
    storage::StorageQuota,
    work::{FreeSlots, WorkEnd, WorkKind, WorkRecord},
};
use labdata_ports::{
    events::EventLog,
    files::FileRepository,
    maintenance::StoreHealth,
    models::{DatasetRepository, ModelRepository, TrainingStore},
    notifications::NotificationRepository,
    work::{ExpiredWork, Task, WorkClaim, WorkQueue},
};
use time::OffsetDateTime;

use crate::{
    given::{self, at},
    lab::lab,
    work::lab::{lose, plan, terms},
};

pub(crate) use crate::work::lab::{result, trained as success};

lab!(
    /// Models of two organizations, and what their trainings change.
    pub struct TrainingsLab {
        /// The records of models.
        pub models: dyn ModelRepository,
        /// Tokens and reports of trainings.
        pub trainings: dyn TrainingStore,
        /// The queue.
        pub queue: dyn WorkQueue,
        /// Datasets that models learn from.
        pub datasets: dyn DatasetRepository,
        /// Files of the same store.
        pub files: dyn FileRepository,
        /// Notices of ended trainings.
        pub notifications: dyn NotificationRepository,
        /// Figures of the store.
        pub health: dyn StoreHealth,
        /// The event log.
        pub log: dyn EventLog,
    }
);

/// A model that is not stored yet.
pub(crate) fn model(name: &str) -> NewModel {
    NewModel {
        id: ModelId::new(given::uuid()),
        name: name.to_owned(),
    }
}

/// A claimed training.
#[derive(Debug, PartialEq)]
pub(crate) struct Training {
    pub(crate) claim: WorkClaim,
    pub(crate) version: ModelVersion,
}

/// The end of a training that failed.
pub(crate) fn failure() -> TrainingEnd {
    TrainingEnd::Failed("the target \"y\" has one value".to_owned())
}

/// A token that no other training has.
pub(crate) fn token() -> ReportTokenHash {
    let (mut hash, unique) = ([7; 32], given::uuid());
    hash[..16].copy_from_slice(unique.as_bytes());
    ReportTokenHash(hash)
}

impl TrainingsLab {
    /// The user who trains the models of an organization.
    pub(crate) fn trainer(&self, organization: OrganizationId) -> UserId {
        let user = [&self.ada, &self.eve]
            .into_iter()
            .find(|user| user.organization == organization);
        user.unwrap().id
    }

    /// A version that is not stored yet, of a new dataset.
    pub(crate) async fn version(
        &self,
        organization: OrganizationId,
        requested_at: OffsetDateTime,
    ) -> NewVersion {
        let requested_by = self.trainer(organization);
        let dataset = given::dataset("wines", requested_by, at(0));
        let quota = StorageQuota::UNLIMITED;
        let added = self.datasets.add(organization, &dataset, quota).await;
        added.unwrap();
        NewVersion {
            id: ModelVersionId::new(given::uuid()),
            description: Some("\"Rot\" und weiß".to_owned()),
            dataset: dataset.id,
            plan: plan(),
            requested_by,
            requested_at,
        }
    }

    /// A new model of that name, whose first version is pending.
    pub(crate) async fn pending(
        &self,
        organization: OrganizationId,
        name: &str,
        requested_at: OffsetDateTime,
    ) -> ModelVersion {
        let version = self.version(organization, requested_at).await;
        let model = model(name);
        let created = self.models.create(organization, &model, &version);
        created.await.unwrap()
    }

    /// A further version, pending.
    pub(crate) async fn retrained(
        &self,
        organization: OrganizationId,
        model: ModelId,
        requested_at: OffsetDateTime,
    ) -> ModelVersion {
        let version = self.version(organization, requested_at).await;
        let added = self.models.add_version(organization, model, &version);
        added.await.unwrap()
    }

    /// Claims trainings at that time.
    pub(crate) async fn claim(&self, now: OffsetDateTime, limit: u32) -> Vec<Training> {
        let (kind, slots) = (WorkKind::Training, FreeSlots::for_any(limit));
        let claimed = self.queue.claim(kind, slots, terms(now)).await.unwrap();
        let trainings = claimed.into_iter().map(|work| match work.task {
            Task::Training(training) => Training {
                claim: work.claim,
                version: training.version,
            },
            Task::Run(run) => panic!("{run:?} is no training"),
        });
        trainings.collect()
    }

    /// A new model of ours of that name, whose first version was claimed then, alone in the queue.
    pub(crate) async fn claimed(&self, name: &str, now: OffsetDateTime) -> Training {
        let pending = self.pending(self.ours, name, now).await;
        let claimed = self.claim(now, 1).await.remove(0);
        assert_eq!(claimed.version.version, pending.version);
        claimed
    }

    /// A new model of ours of that name, whose first version is ready.
    pub(crate) async fn ready(&self, name: &str, now: OffsetDateTime) -> ModelVersion {
        let claimed = self.claimed(name, now).await;
        self.finish(&claimed, &success(), now).await.unwrap()
    }

    /// Ends a training.
    pub(crate) async fn finish(
        &self,
        claimed: &Training,
        end: &TrainingEnd,
        now: OffsetDateTime,
    ) -> Option<ModelVersion> {
        let end = WorkEnd::Training(end.clone());
        match self.queue.finish(claimed.claim, &end, now).await.unwrap()? {
            WorkRecord::Training(version) => Some(*version),
            WorkRecord::Run(execution) => panic!("{execution:?} is no training"),
        }
    }

    /// Takes a training from its holder at that time.
    pub(crate) async fn lose(&self, claimed: &Training, now: OffsetDateTime) -> ExpiredWork {
        lose(&*self.queue, claimed.claim, now).await
    }

    /// Cancels the trainings of a model of ours.
    pub(crate) async fn cancel(&self, model: ModelId, now: OffsetDateTime) -> ModelVersion {
        self.models.cancel(self.ours, model, now).await.unwrap()
    }

    /// Archives a model of ours.
    pub(crate) async fn archive(&self, model: ModelId, now: OffsetDateTime) -> ModelVersion {
        self.models.archive(self.ours, model, now).await.unwrap()
    }

    /// The version of ours as it is stored.
    pub(crate) async fn stored(&self, version: &ModelVersion) -> ModelVersion {
        let stored = self
            .models
            .get(self.ours, version.model, Some(version.number));
        stored.await.unwrap()
    }
}
