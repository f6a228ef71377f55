//! Manifest of a training, as the trainer reads it.

use std::collections::BTreeMap;

use labdata_domain::models::{TrainingLimits, TrainingPlan};
use labdata_ports::{files::blob::SignedUpload, work::WorkClaim};
use serde_json::{Value, json};

/// Seed of the split into rows to learn from and held-out rows. It is the same for all versions, so that
/// their metrics can be compared.
const SEED: u32 = 42;

/// Directories of pretrained models by kind (`image`, `text`, `segmentation`), as the backend sees them.
pub type Checkpoints = BTreeMap<String, String>;

/// URLs that a training calls with its token.
pub(super) struct CallUrls {
    pub(super) images: String,
    pub(super) report: String,
}

/// Secrets of a training.
pub(super) struct Secrets {
    pub(super) token: String,
    pub(super) dataset: String,
    pub(super) artifact: SignedUpload,
}

/// Returns the manifest. One without secrets is for a backend whose runs others see: the training gets them by
/// [`exchange_token`](super::exchange_token::exchange_token).
pub(super) fn manifest(
    claim: WorkClaim,
    plan: &TrainingPlan,
    limits: TrainingLimits,
    checkpoints: &Checkpoints,
    calls: &CallUrls,
    secrets: Option<Secrets>,
) -> Value {
    json!({
        "training_id": claim.work.to_string(),
        "attempt": claim.attempt,
        "task_type": plan.task.as_str(),
        "quality_preset": plan.preset.as_str(),
        "problem_type": plan.problem.as_str(),
        "target_column": plan.target,
        "feature_columns": plan.features,
        "image_columns": plan.images,
        "seed": SEED,
        "time_limit_seconds": limits.time_limit.as_secs_f64(),
        "cpus": limits.cpus,
        "memory_bytes": limits.memory,
        "gpus": limits.gpus,
        "inputs": {"image_locations": {"url": calls.images}},
        "outputs": {"report": {"url": calls.report}},
        "secrets": secrets.map(Secrets::into_json),
        "checkpoints": checkpoints,
    })
}

impl Secrets {
    /// Returns them as the parts of the manifest that the trainer adds.
    pub(super) fn into_json(self) -> Value {
        let headers: BTreeMap<_, _> = self.artifact.headers.into_iter().collect();
        json!({
            "inputs": {
                "dataset": self.dataset,
                "image_locations": {"token": self.token},
            },
            "outputs": {
                "artifact": {"url": self.artifact.url, "headers": headers},
                "report": {"token": self.token},
            },
        })
    }
}
