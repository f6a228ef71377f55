//! Reports of a running training, and its end.

use serde::{Deserialize, Serialize};

use super::{Artifact, Progress, TrainingResult};

/// Report that a training sends while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainingReport {
    /// How far it has come.
    Progress(Progress),
    /// Its result. The version is ready only after the worker has seen the artifact.
    Result(Box<TrainingResult>),
    /// Why it failed.
    Error(TrainingError),
}

/// Failure that the trainer reports (`error.json`). It is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingError {
    /// Code of the failure.
    pub code: String,
    /// Exit code of the trainer.
    pub exit_code: i32,
    /// Message for the person who requested the training.
    pub message: String,
}

/// End of a training, as its worker finds it.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainingEnd {
    /// The version can predict.
    Ready(Box<TrainingResult>, Artifact),
    /// It failed, with the message for the person who requested it.
    Failed(String),
}
