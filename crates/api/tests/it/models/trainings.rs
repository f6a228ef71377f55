//! Real trainings in the sandbox.

use std::time::{Duration, Instant};

use labdata_domain::{
    ids::ModelVersionId,
    models::{ModelVersion, PlainReportToken, QualityPreset, TrainingPhase},
};
use serde_json::json;
use tokio::time::sleep;

use super::training_lab::{DIABETES, TrainingLab, WINE, processes, workspaces};

/// Time in which a cancelled training must have ended.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

fn metric(version: &ModelVersion, name: &str) -> f64 {
    version.metrics.as_ref().unwrap()[name].value
}

fn first_lines(text: &str, count: usize) -> String {
    text.lines()
        .take(count)
        .fold(String::new(), |lines, line| lines + line + "\n")
}

#[tokio::test]
async fn a_model_of_wines_is_trained_and_its_artifact_stored() {
    let lab = TrainingLab::start().await;
    let worker = lab.worker(&lab.sandbox());
    let queued = lab.train(WINE, "cultivar", QualityPreset::Medium).await;
    let ready = lab.ended(&queued).await;
    assert_eq!(ready.error(), None);
    assert!(ready.is_active);
    let accuracy = metric(&ready, "accuracy");
    assert!(accuracy > 0.9, "{accuracy}");
    let progress = ready.progress.clone().unwrap();
    assert!(progress.models_tried > 1, "{progress:?}");
    assert!(progress.best_score.unwrap().value > 0.9);

    let artifact = ready.artifact.unwrap();
    let size = lab
        .server
        .services
        .blobs
        .size(lab.server.organization, artifact.object);
    assert_eq!(size.await.unwrap(), artifact.size);
    let result = lab
        .server
        .services
        .models
        .result(lab.server.organization, ready.model, 1);
    let result = result.await.unwrap().unwrap();
    assert_eq!(result.artifact.sha256, artifact.sha256);
    assert_eq!(result.classes.unwrap().len(), 3);
    worker.stop(Duration::from_secs(10)).await;
    assert!(processes(&ready).is_empty() && workspaces(&ready).is_empty());
}

#[tokio::test]
async fn a_regression_is_trained() {
    let lab = TrainingLab::start().await;
    let worker = lab.worker(&lab.sandbox());
    let queued = lab
        .train(DIABETES, "progression", QualityPreset::Medium)
        .await;
    let ready = lab.ended(&queued).await;
    assert_eq!(ready.error(), None);
    let r2 = metric(&ready, "r2");
    assert!(r2 > 0.4, "{r2}");
    worker.stop(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn data_that_no_model_can_learn_from_fails_with_a_reason() {
    let lab = TrainingLab::start().await;
    let worker = lab.worker(&lab.sandbox());
    // Three wines of the third cultivar.
    let few = first_lines(WINE, 134);
    let queued = lab.train(&few, "cultivar", QualityPreset::Medium).await;
    let failed = lab.ended(&queued).await;
    let error = failed.error().unwrap();
    assert!(
        error.contains("The class \"barbera\" of \"cultivar\" has only"),
        "{error}"
    );
    worker.stop(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_training_without_enough_time_says_so() {
    let mut lab = TrainingLab::start().await;
    lab.limits.time_limit = Duration::from_millis(10);
    let worker = lab.worker(&lab.sandbox());
    let queued = lab.train(WINE, "cultivar", QualityPreset::Medium).await;
    let failed = lab.ended(&queued).await;
    let error = failed.error().unwrap();
    assert!(error.contains("LABDATA_TRAINING_TIME_LIMIT"), "{error}");
    worker.stop(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn cancelling_ends_the_processes_of_a_training() {
    let lab = TrainingLab::start().await;
    let worker = lab.worker(&lab.sandbox());
    // Uses its whole time limit.
    let queued = lab
        .train(DIABETES, "progression", QualityPreset::Best)
        .await;
    let is_fitting = |version: &ModelVersion| {
        let progress = version.progress.as_ref();
        progress.is_some_and(|progress| progress.phase == TrainingPhase::Fitting)
    };
    let fitting = lab.until(&queued, is_fitting).await;
    assert!(!processes(&fitting).is_empty());
    let began = Instant::now();
    assert_eq!(lab.cancel(&fitting).await.state.as_str(), "cancelled");
    while !(processes(&fitting).is_empty() && workspaces(&fitting).is_empty()) {
        assert!(
            began.elapsed() < CANCELLED_WITHIN,
            "{:?}",
            processes(&fitting)
        );
        sleep(Duration::from_millis(50)).await;
    }
    worker.stop(Duration::from_secs(10)).await;
    assert_eq!(lab.version(&fitting).await.state.as_str(), "cancelled");
}

#[tokio::test]
async fn a_training_that_is_cancelled_while_pending_never_starts() {
    let lab = TrainingLab::start().await;
    let first = lab.train(WINE, "cultivar", QualityPreset::Medium).await;
    assert_eq!(lab.cancel(&first).await.state.as_str(), "cancelled");
    let worker = lab.worker(&lab.sandbox());
    // The worker takes the next one, and had no place for two.
    let few = first_lines(WINE, 134);
    let second = lab.train(&few, "cultivar", QualityPreset::Medium).await;
    assert_eq!(lab.ended(&second).await.state.as_str(), "failed");
    assert!(processes(&first).is_empty());
    worker.stop(Duration::from_secs(10)).await;
    assert_eq!(lab.version(&first).await.state.as_str(), "cancelled");
}

#[tokio::test]
async fn reports_need_the_token_of_a_running_training() {
    let lab = TrainingLab::start().await;
    let client = lab.server.anonymous();
    let token = PlainReportToken::from_random(
        ModelVersionId::new(lab.server.services.ids.next_id()),
        [7; 32],
    );
    for path in ["/training-token", "/training-report", "/training-images"] {
        assert_eq!(client.post(path, &json!({})).await.status, 401);
        for presented in [token.reveal(), "ldt_x", "ldk_aaaaaaaa_secret"] {
            let client = client.clone().authorized(&format!("Bearer {presented}"));
            let reply = client.post(path, &json!({"images": []})).await;
            assert_eq!(reply.status, 401, "{}", reply.text);
        }
    }
}
