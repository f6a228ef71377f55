//! The artifact of a training, while the n-th call of the storage fails.

use std::{collections::BTreeMap, fmt::Write, sync::Arc, time::Duration as StdDuration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_application::{
    Error,
    files::upload_file::UploadFile,
    models::{
        create_dataset::{CreateDataset, create_dataset},
        take_snapshot::{SnapshotSource, take_snapshot},
        train_model::{TrainModel, TrainedModel, train_model},
        training::begin_training::TrainingContext,
    },
    work::{Interpretation, WorkContext, end_work::end_work, interpret_end::interpret_end},
};
use labdata_domain::{
    files::ObjectKey,
    models::{
        Dataset, MAX_ARTIFACT_BYTES, QualityPreset, ReportTokenHash, TaskType, TrainingBackend,
        TrainingLimits, TrainingReport, TrainingRequest, TrainingResult,
    },
    work::{BackendPolicy, EndReason, FreeSlots, RunExit, ScriptEnd, WorkId, WorkKind},
};
use labdata_ports::{
    models::TrainingScripts,
    work::{ClaimTerms, ClaimedWork, runner::RunResources},
};
use serde_json::json;
use sha2::{Digest, Sha256};
use time::Duration;

use crate::{
    faulty_storage::{Place, assert_survives},
    files::upload_file,
};

/// Bytes of the artifact.
const ARTIFACT: &[u8] = b"a fitted model";

/// Scripts of trainings, none of which is run.
struct NoScripts;

impl TrainingScripts for NoScripts {
    fn script(&self, _task: TaskType, _manifest: &str) -> String {
        String::new()
    }
}

fn context() -> WorkContext {
    WorkContext::Training(TrainingContext {
        base_url: "http://lab.example.org".to_owned(),
        limits: TrainingLimits {
            time_limit: StdDuration::from_mins(10),
            cpus: 1,
            memory: 1 << 30,
            gpus: 0,
        },
        resources: RunResources::default(),
        policy: BackendPolicy::default(),
        checkpoints: BTreeMap::new(),
        scripts: Arc::new(NoScripts),
    })
}

/// A dataset, stored without failures.
async fn dataset(place: &Place) -> Result<(ObjectKey, Dataset), Error> {
    let (services, actor) = (&place.lab.services, &place.actor);
    // Enough rows for a training.
    let rows = "13.2,1.05\n12.4,0.9\n14.1,0.7\n".repeat(4);
    let rows = Bytes::from(format!("alcohol,hue\n{rows}"));
    let upload = UploadFile {
        bytes: rows,
        ..place.upload("wines.csv")
    };
    let file = upload_file(services, actor, upload).await?;
    let source = SnapshotSource::File(file.id, Box::default());
    let command = CreateDataset {
        name: "wines".to_owned(),
        description: None,
        snapshot: take_snapshot(services, actor, source).await?,
    };
    let created = create_dataset(services, actor, command).await?;
    Ok((file.state.object(), created.dataset))
}

/// A training of that dataset that a worker holds.
async fn claimed(place: &Place, dataset: &Dataset) -> Result<ClaimedWork, Error> {
    let (services, now) = (&place.lab.services, place.lab.services.clock.now());
    let backend = TrainingBackend {
        worker: services.ids.next_id(),
        checked_at: now,
        missing: None,
    };
    services.trainings.record_backend(&backend).await?;
    let command = TrainModel {
        model: TrainedModel::New("wines".to_owned()),
        description: None,
        dataset: dataset.id,
        request: TrainingRequest {
            target: "hue".to_owned(),
            features: None,
            images: Vec::new(),
            task: None,
            problem: None,
            preset: QualityPreset::default(),
        },
    };
    train_model(services, &place.actor, command).await?;
    let terms = ClaimTerms {
        now,
        lease: Duration::MINUTE,
        timeout: Duration::HOUR,
    };
    let slots = FreeSlots::for_any(1);
    let mut claimed = services
        .work
        .claim(WorkKind::Training, slots, terms)
        .await?;
    Ok(claimed.remove(0))
}

fn result() -> TrainingResult {
    let mut sha256 = String::new();
    for byte in Sha256::digest(ARTIFACT) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    let result = json!({
        "problem_type": "regression",
        "classes": null,
        "metrics": { "r2": { "value": 0.9, "higher_is_better": true } },
        "primary_metric": "r2",
        "leaderboard": [],
        "feature_importance": [],
        "confusion_matrix": null,
        "residuals": [],
        "rows": { "train": 2, "test": 1 },
        "features": [
            { "name": "alcohol", "data_type": "float", "nullable": false, "levels": null },
        ],
        "versions": {},
        "artifact": { "sha256": sha256, "size": ARTIFACT.len() },
    });
    TrainingResult::from_json(result).unwrap()
}

#[tokio::test]
async fn an_artifact_survives_each_failure_of_the_storage() {
    assert_survives(async |place| {
        let (file, dataset) = dataset(place).await?;
        let claimed = claimed(place, &dataset).await?;
        let (services, claim) = (&place.faulty, claimed.claim);
        let WorkId::Training(version) = claim.work else {
            panic!("{claimed:?} is no training");
        };
        let (token, artifact) = (
            ReportTokenHash([1; 32]),
            ObjectKey::new(services.ids.next_id()),
        );
        services.trainings.begin(claim, token, artifact).await?;
        let report = TrainingReport::Result(Box::new(result()));
        services.trainings.report(version, token, &report).await?;
        // As the storage takes what the trainer uploads, which fails without a response.
        let body = stream::iter([Ok(Bytes::from_static(ARTIFACT))]).boxed();
        let blobs = &services.blobs;
        let uploaded = blobs.put_new(claim.organization, artifact, body, MAX_ARTIFACT_BYTES);
        let uploaded = uploaded.await.is_ok();
        let end = ScriptEnd {
            reason: EndReason::Exited,
            exit: Some(RunExit::Code(i32::from(!uploaded))),
            error_tail: String::new(),
        };
        let context = context();
        let mut interpreted = interpret_end(services, &claimed, &context, &end, true).await;
        if interpreted.is_err() {
            // The worker asks again.
            interpreted = interpret_end(services, &claimed, &context, &end, true).await;
        }
        let Interpretation::Ended(end) = interpreted? else {
            panic!("the training has an end");
        };
        assert!(end_work(services, claim, &end).await?);
        let mut acknowledged = vec![file, dataset.object];
        acknowledged.extend(uploaded.then_some(artifact));
        Ok(acknowledged)
    })
    .await;
}
