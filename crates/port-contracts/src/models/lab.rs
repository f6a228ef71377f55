//! Models and trainings for clauses.

use std::sync::Arc;

use labdata_domain::{
    ids::{DatasetId, ModelId, ModelVersionId, OrganizationId, UserId},
    models::{ModelVersion, NewModel, NewVersion, ReportTokenHash, TrainingEnd},
    storage::StorageQuota,
    work::{FreeSlots, WorkEnd, WorkKind, WorkRecord},
};
use labdata_ports::{
    files::FileRepository,
    models::{DatasetRepository, ModelRepository, TrainingStore},
    work::{Task, WorkClaim, WorkQueue},
};
use time::OffsetDateTime;

use crate::{
    Subject,
    fixtures::Tenants,
    given::{self, at},
    work::lab::{plan, terms},
};

pub(crate) use crate::work::lab::{result, trained as success};

/// A harness in which models can be trained.
pub trait Models:
    Tenants
    + Subject<dyn ModelRepository>
    + Subject<dyn TrainingStore>
    + Subject<dyn WorkQueue>
    + Subject<dyn DatasetRepository>
    + Subject<dyn FileRepository>
{
    /// The records of models.
    fn models(&self) -> Arc<dyn ModelRepository> {
        Subject::<dyn ModelRepository>::subject(self)
    }

    /// Tokens and reports of trainings.
    fn trainings(&self) -> Arc<dyn TrainingStore> {
        Subject::<dyn TrainingStore>::subject(self)
    }

    /// The queue.
    fn queue(&self) -> Arc<dyn WorkQueue> {
        Subject::<dyn WorkQueue>::subject(self)
    }
}

impl<H> Models for H where
    H: Tenants
        + Subject<dyn ModelRepository>
        + Subject<dyn TrainingStore>
        + Subject<dyn WorkQueue>
        + Subject<dyn DatasetRepository>
        + Subject<dyn FileRepository>
{
}

/// A user and a dataset of an organization.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lab {
    pub(crate) organization: OrganizationId,
    pub(crate) user: UserId,
    pub(crate) dataset: DatasetId,
}

/// The organization of that name, with a user and a dataset.
pub(crate) async fn lab<H: Models>(harness: &H, name: &str) -> Lab {
    let organization = harness.organization(name).await.id;
    let user = harness.user(organization, "ada@example.org").await.id;
    let dataset = given::dataset("wines", user, at(0));
    let datasets = Subject::<dyn DatasetRepository>::subject(harness);
    let added = datasets.add(organization, &dataset, StorageQuota::UNLIMITED);
    added.await.unwrap();
    Lab {
        organization,
        user,
        dataset: dataset.id,
    }
}

/// A model that is not stored yet.
pub(crate) fn model(name: &str) -> NewModel {
    NewModel {
        id: ModelId::new(given::uuid()),
        name: name.to_owned(),
    }
}

/// A version that is not stored yet.
pub(crate) fn version(lab: Lab, requested_at: OffsetDateTime) -> NewVersion {
    NewVersion {
        id: ModelVersionId::new(given::uuid()),
        description: Some("\"Rot\" und weiß".to_owned()),
        dataset: lab.dataset,
        plan: plan(),
        requested_by: lab.user,
        requested_at,
    }
}

/// A new model of that name, whose first version is pending.
pub(crate) async fn pending<H: Models>(
    harness: &H,
    lab: Lab,
    name: &str,
    requested_at: OffsetDateTime,
) -> ModelVersion {
    let version = version(lab, requested_at);
    let models = harness.models();
    let created = models
        .create(lab.organization, &model(name), &version)
        .await;
    created.unwrap()
}

/// A further version, pending.
pub(crate) async fn retrained<H: Models>(
    harness: &H,
    lab: Lab,
    model: ModelId,
    requested_at: OffsetDateTime,
) -> ModelVersion {
    let version = version(lab, requested_at);
    let models = harness.models();
    let added = models.add_version(lab.organization, model, &version).await;
    added.unwrap()
}

/// A claimed training.
#[derive(Debug, PartialEq)]
pub(crate) struct Training {
    pub(crate) claim: WorkClaim,
    pub(crate) version: ModelVersion,
}

/// Claims trainings at that time.
pub(crate) async fn claim<H: Models>(
    harness: &H,
    now: OffsetDateTime,
    limit: u32,
) -> Vec<Training> {
    let (queue, slots) = (harness.queue(), FreeSlots::for_any(limit));
    let claimed = queue.claim(WorkKind::Training, slots, terms(now)).await;
    let trainings = claimed.unwrap().into_iter().map(|work| match work.task {
        Task::Training(training) => Training {
            claim: work.claim,
            version: training.version,
        },
        Task::Run(run) => panic!("{run:?} is no training"),
    });
    trainings.collect()
}

/// A new model of that name, whose first version was claimed then, alone in the queue.
pub(crate) async fn claimed<H: Models>(
    harness: &H,
    lab: Lab,
    name: &str,
    now: OffsetDateTime,
) -> Training {
    let pending = pending(harness, lab, name, now).await;
    let claimed = claim(harness, now, 1).await.remove(0);
    assert_eq!(claimed.version.version, pending.version);
    claimed
}

/// A new model of that name, whose first version is ready.
pub(crate) async fn ready<H: Models>(
    harness: &H,
    lab: Lab,
    name: &str,
    now: OffsetDateTime,
) -> ModelVersion {
    let claimed = claimed(harness, lab, name, now).await;
    finish(harness, &claimed, &success(), now).await.unwrap()
}

/// Ends a training.
pub(crate) async fn finish<H: Models>(
    harness: &H,
    claimed: &Training,
    end: &TrainingEnd,
    now: OffsetDateTime,
) -> Option<ModelVersion> {
    let end = WorkEnd::Training(end.clone());
    let ended = harness.queue().finish(claimed.claim, &end, now).await;
    match ended.unwrap()? {
        WorkRecord::Training(version) => Some(*version),
        WorkRecord::Run(execution) => panic!("{execution:?} is no training"),
    }
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

/// The version as it is stored.
pub(crate) async fn stored<H: Models>(
    harness: &H,
    lab: Lab,
    version: &ModelVersion,
) -> ModelVersion {
    let models = harness.models();
    let number = Some(version.number);
    let stored = models.get(lab.organization, version.model, number).await;
    stored.unwrap()
}
