//! A server with a dataset and a training backend, and a worker that this test plays.

use std::collections::BTreeSet;

use labdata_domain::{
    files::ObjectKey,
    ids::DatasetId,
    models::{
        Artifact, ColumnProfile, Dataset, DatasetColumn, DatasetSource, ModelVersion,
        TrainingBackend, TrainingEnd, TrainingResult,
    },
    scalar::DataType,
    storage::StorageQuota,
    work::{FreeSlots, WorkEnd, WorkKind, WorkRecord},
};
use labdata_ports::work::{ClaimTerms, WorkClaim};
use serde_json::{Value, json};
use time::Duration;

use crate::server::{Client, TestServer};

pub(super) const PATH: &str = "/api/v1/ml-models";

pub(super) struct Lab {
    pub(super) server: TestServer,
    pub(super) client: Client,
    pub(super) dataset: DatasetId,
}

impl Lab {
    /// A backend can take work.
    pub(super) async fn start() -> Self {
        let lab = Self::without_backend().await;
        lab.record_backend(None).await;
        lab
    }

    pub(super) async fn without_backend() -> Self {
        let server = TestServer::start().await;
        let client = server.admin().await;
        let column = |name: &str, data_type, distinct| DatasetColumn {
            name: name.to_owned(),
            data_type,
            profile: ColumnProfile { nulls: 0, distinct },
        };
        let dataset = Dataset {
            id: server.services.ids.next_id().into(),
            name: "wines".to_owned(),
            description: None,
            columns: vec![
                column("alcohol", DataType::Float, None),
                column("malic acid", DataType::Float, None),
                column("cultivar", DataType::Integer, Some(3)),
                column("raw", DataType::Json, None),
            ],
            row_count: 178,
            source: DatasetSource::Query("SELECT * FROM wine".to_owned()),
            tables: BTreeSet::new(),
            object: ObjectKey::new(server.services.ids.next_id()),
            size: 9_000,
            created_by: server.user,
            created_at: server.services.clock.now(),
        };
        let datasets = &server.services.datasets;
        datasets
            .add(server.organization, &dataset, StorageQuota::UNLIMITED)
            .await
            .unwrap();
        Self {
            server,
            client,
            dataset: dataset.id,
        }
    }

    /// Records the state of a backend, as a worker does.
    pub(super) async fn record_backend(&self, missing: Option<&str>) {
        let backend = TrainingBackend {
            worker: self.server.services.ids.next_id(),
            checked_at: self.server.services.clock.now(),
            missing: missing.map(str::to_owned),
        };
        let trainings = &self.server.services.trainings;
        trainings.record_backend(&backend).await.unwrap();
    }

    /// The body of a valid training, with these fields besides.
    pub(super) fn body(&self, fields: Value) -> Value {
        let mut body = json!({
            "dataset_id": self.dataset.to_string(), "target_column": "cultivar",
        });
        let Value::Object(fields) = fields else {
            panic!("{fields}");
        };
        body.as_object_mut().unwrap().extend(fields);
        body
    }

    /// A new model of that name, pending.
    pub(super) async fn train(&self, name: &str) -> Value {
        let body = self.body(json!({"name": name}));
        self.client.post(PATH, &body).await.json(200)
    }

    /// A further version, pending.
    pub(super) async fn retrain(&self, model: &Value) -> Value {
        let body = self.body(json!({"ml_model_id": model["id"]}));
        self.client.post(PATH, &body).await.json(200)
    }

    /// Claims the oldest training.
    pub(super) async fn claim(&self) -> WorkClaim {
        let terms = ClaimTerms {
            now: self.server.services.clock.now(),
            lease: Duration::seconds(20),
            timeout: Duration::HOUR,
        };
        let work = &self.server.services.work;
        let slots = FreeSlots::for_any(1);
        let claimed = work.claim(WorkKind::Training, slots, terms).await;
        claimed.unwrap().remove(0).claim
    }

    /// The end of a training with that result.
    pub(super) fn success(&self, result: Value) -> TrainingEnd {
        let result = TrainingResult::from_json(result).unwrap();
        let artifact = Artifact {
            object: ObjectKey::new(self.server.services.ids.next_id()),
            sha256: result.artifact.sha256,
            size: result.artifact.size,
        };
        TrainingEnd::Ready(Box::new(result), artifact)
    }

    pub(super) async fn finish(
        &self,
        claim: &WorkClaim,
        end: &TrainingEnd,
    ) -> Option<ModelVersion> {
        let now = self.server.services.clock.now();
        let end = WorkEnd::Training(end.clone());
        let work = &self.server.services.work;
        let ended = work.finish(*claim, &end, now).await.unwrap()?;
        let WorkRecord::Training(version) = ended else {
            panic!("{ended:?} is no training");
        };
        Some(*version)
    }

    /// A model of that name, whose first version is ready.
    pub(super) async fn ready(&self, name: &str) -> Value {
        let model = self.train(name).await;
        let claimed = self.claim().await;
        let end = self.success(result());
        self.finish(&claimed, &end).await.unwrap();
        self.client.get(&path_of(&model)).await.json(200)
    }
}

pub(super) fn path_of(model: &Value) -> String {
    format!("{PATH}/{}", model["id"].as_str().unwrap())
}

/// The result of a classification.
pub(super) fn result() -> Value {
    json!({
        "problem_type": "multiclass",
        "classes": [0, 1, 2],
        "metrics": {
            "accuracy": {"value": 0.972, "higher_is_better": true},
            "log_loss": {"value": 0.08, "higher_is_better": false},
        },
        "primary_metric": "accuracy",
        "leaderboard": [
            {"model": "LightGBM", "score": 0.972, "validation_score": null, "fit_seconds": 1.5, "predict_seconds": 0.01},
        ],
        "feature_importance": [
            {"feature": "alcohol", "importance": 0.21, "stddev": 0.02},
            {"feature": "malic acid", "importance": -0.01, "stddev": null},
        ],
        "confusion_matrix": {"labels": [0, 1, 2], "counts": [[12, 0, 0], [1, 13, 0], [0, 0, 10]]},
        "residuals": null,
        "rows": {"train": 142, "test": 36},
        "features": [
            {"name": "alcohol", "data_type": "float", "nullable": false, "levels": null},
            {"name": "malic acid", "data_type": "float", "nullable": false, "levels": null},
        ],
        "versions": {"python": "3.12.1", "autogluon.tabular": "1.6.0"},
        "artifact": {"file": "artifact.tar.zst", "sha256": "ab".repeat(32), "size": 12_345},
    })
}
