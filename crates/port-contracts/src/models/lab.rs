//! Models and trainings for clauses.

use std::sync::Arc;

use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId, OrganizationId, UserId},
    models::{
        Artifact, ModelVersion, NewModel, NewVersion, ProblemType, QualityPreset, ReportTokenHash,
        TaskType, TrainingEnd, TrainingPlan, TrainingResult,
    },
    storage::StorageQuota,
    work::FreeSlots,
};
use labdata_ports::{
    files::FileRepository,
    models::{ClaimedTraining, DatasetRepository, ModelRepository, TrainingQueue},
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::{
    Subject,
    fixtures::Tenants,
    given::{self, at},
};

/// Lease of a claim in clauses.
pub const LEASE: Duration = Duration::seconds(20);

/// A harness in which models can be trained.
pub trait Models:
    Tenants
    + Subject<dyn ModelRepository>
    + Subject<dyn TrainingQueue>
    + Subject<dyn DatasetRepository>
    + Subject<dyn FileRepository>
{
    /// The records of models.
    fn models(&self) -> Arc<dyn ModelRepository> {
        Subject::<dyn ModelRepository>::subject(self)
    }

    /// The queue.
    fn trainings(&self) -> Arc<dyn TrainingQueue> {
        Subject::<dyn TrainingQueue>::subject(self)
    }
}

impl<H> Models for H where
    H: Tenants
        + Subject<dyn ModelRepository>
        + Subject<dyn TrainingQueue>
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
        plan: TrainingPlan {
            target: "Rebsorte \"2\"".to_owned(),
            features: vec!["alcohol".to_owned(), "µ".to_owned()],
            images: vec!["label".to_owned()],
            task: TaskType::Multimodal,
            problem: ProblemType::Multiclass,
            preset: QualityPreset::Good,
        },
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

/// Claims trainings at that time.
pub(crate) async fn claim<H: Models>(
    harness: &H,
    now: OffsetDateTime,
    limit: u32,
) -> Vec<ClaimedTraining> {
    let slots = FreeSlots::for_any(limit);
    harness.trainings().claim(now, LEASE, slots).await.unwrap()
}

/// A new model of that name, whose first version was claimed then, alone in the queue.
pub(crate) async fn claimed<H: Models>(
    harness: &H,
    lab: Lab,
    name: &str,
    now: OffsetDateTime,
) -> ClaimedTraining {
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
    claimed: &ClaimedTraining,
    end: &TrainingEnd,
    now: OffsetDateTime,
) -> Option<ModelVersion> {
    let queue = harness.trainings();
    queue.finish(claimed.claim, end, now).await.unwrap()
}

/// The result of a training, with every field.
pub(crate) fn result() -> TrainingResult {
    let result = json!({
        "problem_type": "multiclass",
        "classes": [0, 1.5, "Süd \"2\"", true],
        "metrics": {
            "accuracy": {"value": 0.972_222_222_222_222_2, "higher_is_better": true},
            "log_loss": {"value": 1e-7, "higher_is_better": false},
        },
        "primary_metric": "accuracy",
        "leaderboard": [
            {"model": "LightGBM", "score": 0.97, "validation_score": null, "fit_seconds": 1.5, "predict_seconds": 0.01},
        ],
        "feature_importance": [{"feature": "µ", "importance": 0.2, "stddev": null}],
        "confusion_matrix": {"labels": ["a", "b"], "counts": [[10, 1], [0, 9]]},
        "residuals": [{"actual": 0.1, "predicted": -0.3}],
        "rows": {"train": 142, "test": 36},
        "features": [
            {"name": "µ", "data_type": "string", "nullable": true, "levels": ["x", "y"]},
            {"name": "label", "data_type": "image", "nullable": false, "levels": null},
        ],
        "versions": {"python": "3.12.1"},
        "artifact": {"sha256": "0b".repeat(32), "size": 12_345},
    });
    TrainingResult::from_json(result).unwrap()
}

/// The end of a successful training, with a new artifact.
pub(crate) fn success() -> TrainingEnd {
    let result = result();
    let artifact = Artifact {
        object: ObjectKey::new(given::uuid()),
        sha256: result.artifact.sha256,
        size: result.artifact.size,
    };
    TrainingEnd::Ready(Box::new(result), artifact)
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
