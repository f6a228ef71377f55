//! Records of models: one per version.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use super::{
    Metric, TrainingPlan,
    artifact::Artifact,
    progress::Progress,
    report::TrainingEnd,
    version::{ActivateError, VersionState},
};
use crate::{
    files::FilePath,
    ids::{DatasetId, ModelId, ModelVersionId, UserId},
    refusal::{ErrorCode, Refuse},
    work::has_another_attempt,
};

/// Maximum number of characters of a model's name.
pub const MAX_MODEL_NAME_LENGTH: usize = 200;

/// Maximum number of characters of a version's description.
pub const MAX_MODEL_DESCRIPTION_LENGTH: usize = 2_000;

/// Error message of a version whose workers were lost.
const WORKERS_LOST: &str = "the worker that trained it was lost, and so was the one that tried again; \
                            ask the operator whether the machine has enough memory, then retrain it";

/// Model to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewModel {
    /// Its id.
    pub id: ModelId,
    /// Its name, unique among the organization's models that are not archived.
    pub name: String,
}

/// Version to be trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// Its id.
    pub id: ModelVersionId,
    /// Its description.
    pub description: Option<String>,
    /// The dataset that it learns from.
    pub dataset: DatasetId,
    /// Its training.
    pub plan: TrainingPlan,
    /// The user who requests it, and who is notified of its end.
    pub requested_by: UserId,
    /// When it is requested. The oldest trainings start first.
    pub requested_at: OffsetDateTime,
}

/// One version of a model, with what it shares with the model's other versions.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelVersion {
    /// The model's id.
    pub model: ModelId,
    /// Its own id.
    pub version: ModelVersionId,
    /// The model's name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// True if the model is archived.
    pub archived: bool,
    /// Its number, counted from 1 within the model.
    pub number: u32,
    /// True if it responds predictions.
    pub is_active: bool,
    /// Its state.
    pub state: VersionState,
    /// The dataset that it learns from.
    pub dataset: DatasetId,
    /// Its training.
    pub plan: TrainingPlan,
    /// The user who requested it.
    pub requested_by: UserId,
    /// When it was requested.
    pub requested_at: OffsetDateTime,
    /// Progress of its last training; `None` before the first report.
    pub progress: Option<Progress>,
    /// Its metrics by name, once it is ready.
    pub metrics: Option<BTreeMap<String, Metric>>,
    /// Its artifact, once it is ready.
    pub artifact: Option<Artifact>,
}

/// Error: another model of the organization has the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "another model is named \"{0}\"; retrain it by its ml_model_id, archive it, or choose another \
     name"
)]
pub struct NameTaken(pub String);

impl Refuse for NameTaken {
    fn code(&self) -> ErrorCode {
        ErrorCode::NameTaken
    }
}

/// Error: the model is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this model is archived: it can be read, but it is neither trained nor activated; restore it first"
)]
pub struct ModelArchived;

impl Refuse for ModelArchived {
    fn code(&self) -> ErrorCode {
        ErrorCode::ModelArchived
    }
}

/// Error: a training names both a new model and an existing one, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give name to train a new model, or ml_model_id to retrain an existing one, and not both")]
pub struct OneModel;

/// Error: a version has nothing to show yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {number} is {state}: only a ready version has {wanted}")]
pub struct NotReadyYet {
    /// Number of the version.
    pub number: u32,
    /// Name of its state.
    pub state: &'static str,
    /// Request.
    pub wanted: &'static str,
}

impl Refuse for NotReadyYet {
    fn code(&self) -> ErrorCode {
        ErrorCode::VersionNotReady
    }
}

impl ModelVersion {
    /// Makes a version that waits for a worker.
    #[must_use]
    pub fn queue(model: &NewModel, number: u32, new: &NewVersion) -> Self {
        Self {
            model: model.id,
            version: new.id,
            name: model.name.clone(),
            description: new.description.clone(),
            archived: false,
            number,
            is_active: false,
            state: VersionState::Pending,
            dataset: new.dataset,
            plan: new.plan.clone(),
            requested_by: new.requested_by,
            requested_at: new.requested_at,
            progress: None,
            metrics: None,
            artifact: None,
        }
    }

    /// Returns the version to the queue; `None` unless it is training.
    #[must_use]
    pub fn requeue(self) -> Option<Self> {
        Some(Self {
            state: self.state.requeue()?,
            // That of the lost worker says nothing about the next try.
            progress: None,
            ..self
        })
    }

    /// Records the end of the training; `None` unless it runs. The version does not become active by
    /// that alone ([`super::becomes_active`]).
    #[must_use]
    pub fn end(self, end: &TrainingEnd, now: OffsetDateTime) -> Option<Self> {
        Some(match end {
            TrainingEnd::Ready(result, artifact) => Self {
                state: self.state.succeed(now)?,
                metrics: Some(result.metrics.clone()),
                artifact: Some(*artifact),
                ..self
            },
            TrainingEnd::Failed(error) => Self {
                state: self.state.fail(error.clone(), now)?,
                ..self
            },
        })
    }

    /// The version whose training has now lost that many workers: queued again, or failed; `None`
    /// unless it is training.
    #[must_use]
    pub fn lose_worker(self, lost_workers: u32, now: OffsetDateTime) -> Option<Self> {
        if has_another_attempt(lost_workers) {
            self.requeue()
        } else {
            self.end(&TrainingEnd::Failed(WORKERS_LOST.to_owned()), now)
        }
    }

    /// Cancels the training; `None` if the version has ended.
    #[must_use]
    pub fn cancel(self, now: OffsetDateTime) -> Option<Self> {
        Some(Self {
            state: self.state.cancel(now)?,
            ..self
        })
    }

    /// Checks that the version can be activated.
    ///
    /// # Errors
    /// [`ActivateError::NotReady`].
    pub const fn check_activation(&self) -> Result<(), ActivateError> {
        self.state.check_activation(self.number)
    }

    /// Returns the artifact of a ready version.
    ///
    /// # Errors
    /// [`NotReadyYet`].
    pub fn ready_artifact(&self) -> Result<Artifact, NotReadyYet> {
        self.artifact.ok_or_else(|| self.not_ready("an artifact"))
    }

    /// Returns the name under which the artifact is saved.
    #[must_use]
    pub fn file_name(&self) -> FilePath {
        // With the number, so that downloads of several versions do not overwrite each other.
        FilePath::named(&format!("{}-v{}", self.name, self.number), ".tar.zst")
    }

    /// The refusal of a request for something that only a ready version has.
    #[must_use]
    pub const fn not_ready(&self, wanted: &'static str) -> NotReadyYet {
        NotReadyYet {
            number: self.number,
            state: self.state.as_str(),
            wanted,
        }
    }

    /// Returns the error message of a failed version.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match &self.state {
            VersionState::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
