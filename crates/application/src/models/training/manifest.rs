//! Manifest of a training, as the trainer reads it.

use std::collections::BTreeMap;

use labdata_domain::models::TrainingLimits;
use labdata_ports::files::blob::SignedUpload;
use serde_json::{Value, json};

use super::claim_trainings::HeldTraining;

/// Seed of the split into rows to learn from and held-out rows. It is the same for all versions, so that
/// their metrics can be compared.
const SEED: u32 = 42;

/// Directories of pretrained models by kind (`image`, `text`, `segmentation`), as the backend sees them.
pub type Checkpoints = BTreeMap<String, String>;

/// URLs that a training uses.
pub(super) struct TrainingUrls {
    pub(super) dataset: String,
    pub(super) images: String,
    pub(super) artifact: SignedUpload,
    pub(super) report: String,
    /// Token for `images` and `report`.
    pub(super) token: String,
}

pub(super) fn manifest(
    held: &HeldTraining,
    limits: TrainingLimits,
    checkpoints: &Checkpoints,
    urls: TrainingUrls,
) -> Value {
    let claimed = &held.training;
    let plan = &claimed.version.plan;
    let headers: BTreeMap<_, _> = urls.artifact.headers.into_iter().collect();
    json!({
        "training_id": claimed.claim.version.to_string(),
        "attempt": claimed.claim.attempt,
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
        "inputs": {
            "dataset": urls.dataset,
            "image_locations": {"url": urls.images, "token": urls.token},
        },
        "outputs": {
            "artifact": {"url": urls.artifact.url, "headers": headers},
            "report": {"url": urls.report, "token": urls.token},
        },
        "checkpoints": checkpoints,
    })
}
