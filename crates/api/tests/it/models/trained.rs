//! Models that are ready, without a training.

use std::collections::BTreeSet;

use labdata_domain::{
    files::ObjectKey,
    ids::{DatasetId, ModelId, ModelVersionId},
    models::{
        Artifact, Dataset, DatasetSource, ModelVersion, NewModel, NewVersion, QualityPreset,
        TaskType, TrainingEnd, TrainingPlan, TrainingResult,
    },
    storage::StorageQuota,
    work::{FreeSlots, WorkEnd, WorkKind, WorkRecord},
};
use labdata_ports::work::ClaimTerms;
use serde_json::{Value, json};
use time::Duration;

use crate::server::TestServer;

/// Result of a regression with these features.
pub(crate) fn regression(features: &[(&str, &str)]) -> TrainingResult {
    result("regression", &Value::Null, features)
}

/// Result of a classification with these classes and features.
pub(crate) fn classification(classes: &Value, features: &[(&str, &str)]) -> TrainingResult {
    result("multiclass", classes, features)
}

/// Result of a segmentation with the image column `image`.
pub(crate) fn segmentation() -> TrainingResult {
    result("semantic_segmentation", &Value::Null, &[("image", "image")])
}

fn result(problem: &str, classes: &Value, features: &[(&str, &str)]) -> TrainingResult {
    let features: Vec<Value> = features
        .iter()
        .map(|(name, data_type)| {
            json!({"name": name, "data_type": data_type, "nullable": true, "levels": null})
        })
        .collect();
    let result = json!({
        "problem_type": problem, "classes": classes, "features": features,
        "metrics": {"score": {"value": 0.9, "higher_is_better": true}}, "primary_metric": "score",
        "leaderboard": [], "feature_importance": null, "confusion_matrix": null,
        "residuals": null, "rows": {"train": 80, "test": 20}, "versions": {},
        "artifact": {"sha256": "0b".repeat(32), "size": 7},
    });
    TrainingResult::from_json(result).unwrap()
}

impl TestServer {
    /// Adds a model of that name whose first version waits for a worker.
    pub(crate) async fn pending_model(&self, name: &str, result: &TrainingResult) -> ModelVersion {
        let (services, now) = (&self.services, self.services.clock.now());
        let id = || services.ids.next_id();
        let dataset = Dataset {
            id: DatasetId::new(id()),
            name: name.to_owned(),
            description: None,
            columns: Vec::new(),
            row_count: 100,
            source: DatasetSource::Query("select 1".to_owned()),
            tables: BTreeSet::new(),
            object: ObjectKey::new(id()),
            size: 1,
            created_by: self.user,
            created_at: now,
        };
        services
            .datasets
            .add(self.organization, &dataset, StorageQuota::UNLIMITED)
            .await
            .unwrap();
        let model = NewModel {
            id: ModelId::new(id()),
            name: name.to_owned(),
        };
        let version = NewVersion {
            id: ModelVersionId::new(id()),
            description: None,
            dataset: dataset.id,
            plan: TrainingPlan {
                target: "target".to_owned(),
                features: Vec::new(),
                images: Vec::new(),
                task: TaskType::Tabular,
                problem: result.problem_type,
                preset: QualityPreset::Medium,
            },
            requested_by: self.user,
            requested_at: now,
        };
        let created = services.models.create(self.organization, &model, &version);
        created.await.unwrap()
    }

    /// Adds a model of that name whose first version is active.
    pub(crate) async fn trained_model(&self, name: &str, result: TrainingResult) -> ModelVersion {
        self.pending_model(name, &result).await;
        self.finish_training(result).await
    }

    /// Adds a version of the model, which is active.
    pub(crate) async fn retrained_model(
        &self,
        of: &ModelVersion,
        result: TrainingResult,
    ) -> ModelVersion {
        let version = NewVersion {
            id: ModelVersionId::new(self.services.ids.next_id()),
            description: None,
            dataset: of.dataset,
            plan: of.plan.clone(),
            requested_by: self.user,
            requested_at: self.services.clock.now(),
        };
        let models = &self.services.models;
        let added = models.add_version(self.organization, of.model, &version);
        added.await.unwrap();
        self.finish_training(result).await
    }

    /// Ends the only training that waits.
    async fn finish_training(&self, result: TrainingResult) -> ModelVersion {
        let (queue, now) = (&self.services.work, self.services.clock.now());
        let terms = ClaimTerms {
            now,
            lease: Duration::MINUTE,
            timeout: Duration::HOUR,
        };
        let slots = FreeSlots {
            free: 1,
            reserved: 0,
        };
        let claimed = queue.claim(WorkKind::Training, slots, terms).await.unwrap();
        let artifact = Artifact {
            object: ObjectKey::new(self.services.ids.next_id()),
            sha256: result.artifact.sha256,
            size: result.artifact.size,
        };
        let end = WorkEnd::Training(TrainingEnd::Ready(Box::new(result), artifact));
        let ended = queue.finish(claimed[0].claim, &end, now).await.unwrap();
        let Some(WorkRecord::Training(version)) = ended else {
            panic!("{ended:?} is no training");
        };
        *version
    }
}
