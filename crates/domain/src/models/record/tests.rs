use uuid::Uuid;

use super::*;
use crate::{
    files::ObjectKey,
    models::{
        ProblemType, QualityPreset, Score, TaskType, TrainingPhase, TrainingResult,
        result::tests::result,
    },
};

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

pub(crate) fn pending() -> ModelVersion {
    let model = NewModel {
        id: ModelId::new(Uuid::from_u128(1)),
        name: "wine".to_owned(),
    };
    let new = NewVersion {
        id: ModelVersionId::new(Uuid::from_u128(2)),
        description: None,
        dataset: DatasetId::new(Uuid::from_u128(3)),
        plan: TrainingPlan {
            target: "cultivar".to_owned(),
            features: vec!["alcohol".to_owned()],
            images: Vec::new(),
            task: TaskType::Tabular,
            problem: ProblemType::Multiclass,
            preset: QualityPreset::Medium,
        },
        requested_by: UserId::new(Uuid::from_u128(4)),
        requested_at: NOW,
    };
    ModelVersion::queue(&model, 2, &new)
}

fn training() -> ModelVersion {
    ModelVersion {
        state: VersionState::Training { started_at: NOW },
        progress: Some(Progress {
            phase: TrainingPhase::Fitting,
            models_tried: 3,
            best_score: Score::reported("accuracy", 0.5),
            updated_at: NOW,
        }),
        ..pending()
    }
}

fn ready() -> TrainingEnd {
    let result: TrainingResult = result();
    let artifact = Artifact {
        object: ObjectKey::new(Uuid::from_u128(9)),
        sha256: result.artifact.sha256,
        size: result.artifact.size,
    };
    TrainingEnd::Ready(Box::new(result), artifact)
}

#[test]
fn a_ready_version_has_metrics_and_an_artifact_and_is_not_active_by_that() {
    let ended = training().end(&ready(), NOW).unwrap();
    assert_eq!(ended.metrics, Some(result().metrics));
    assert!(ended.ready_artifact().is_ok());
    assert!(!ended.is_active);
    assert_eq!(pending().end(&ready(), NOW), None);
}

#[test]
fn a_version_that_is_not_ready_says_so_where_its_artifact_is_requested() {
    let refusal = training().ready_artifact().unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "version 2 is training: only a ready version has an artifact"
    );
}

#[test]
fn the_file_of_an_artifact_has_the_name_and_the_number() {
    let version = ModelVersion {
        name: "yield / day".to_owned(),
        ..pending()
    };
    assert_eq!(version.file_name().as_str(), "yield _ day-v2.tar.zst");
}

#[test]
fn a_version_that_returns_to_the_queue_forgets_its_progress() {
    let requeued = training().requeue().unwrap();
    assert_eq!(requeued, pending());
    assert_eq!(pending().requeue(), None);
}

#[test]
fn a_failed_version_has_its_message() {
    let end = TrainingEnd::Failed("constant target".to_owned());
    assert_eq!(
        training().end(&end, NOW).unwrap().error(),
        Some("constant target")
    );
    let lost = training().lose_worker(2, NOW).unwrap();
    assert_eq!(lost.error(), Some(WORKERS_LOST));
    let lost = training().lose_worker(1, NOW).unwrap();
    assert_eq!(lost.state, VersionState::Pending);
    assert_eq!(training().cancel(NOW).unwrap().error(), None);
}

#[test]
fn a_score_that_cannot_be_stored_is_none() {
    assert!(Score::reported("accuracy", 0.9).is_some());
    assert_eq!(Score::reported("accuracy", f64::NAN), None);
    assert_eq!(Score::reported("a\0b", 1.0), None);
    assert_eq!(Score::reported(&"x".repeat(201), 1.0), None);
}

#[test]
fn every_phase_has_its_name() {
    for (name, phase) in TrainingPhase::ALL {
        assert_eq!(phase.as_str(), name);
        assert_eq!(serde_json::to_value(phase).unwrap(), name);
    }
}
