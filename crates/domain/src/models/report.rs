//! Reports of a running training, and its end.

use serde::{Deserialize, Serialize};

use super::{artifact::Artifact, progress::Progress, result::TrainingResult};

/// Report that a training sends while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainingReport {
    /// Progress.
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

/// Maximum number of characters of [`TrainingError::code`].
const MAX_CODE: usize = 100;

/// Maximum number of characters of [`TrainingError::message`].
const MAX_MESSAGE: usize = 2_000;

impl TrainingError {
    /// Bounds its texts, and replaces what is not printable.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            code: printable(&self.code, MAX_CODE),
            exit_code: self.exit_code,
            message: printable(&self.message, MAX_MESSAGE),
        }
    }
}

/// Bounds an untrusted text, and replaces what is not printable.
pub(super) fn printable(text: &str, most: usize) -> String {
    let cleaned = text.chars().map(|char| match char {
        '\n' => '\n',
        '\t' => ' ',
        // Output of trainers has escape sequences, and PostgreSQL stores no NUL.
        char if char.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    });
    let mut bounded: String = cleaned.take(most).collect();
    if text.chars().nth(most).is_some() {
        bounded.push('…');
    }
    bounded.trim().to_owned()
}

/// End of a training, as its worker finds it.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainingEnd {
    /// The version can predict.
    Ready(Box<TrainingResult>, Artifact),
    /// It failed, with the message for the person who requested it.
    Failed(String),
}
