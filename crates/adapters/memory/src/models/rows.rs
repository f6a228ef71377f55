//! Rows of models' versions in memory.

use labdata_domain::{
    files::ObjectKey,
    models::{ModelVersion, ReportTokenHash, TrainingResult},
};
use labdata_ports::models::Reported;

use crate::work::rows::Claims;

/// A version of a model, with its training.
#[derive(Clone, Debug)]
pub(crate) struct VersionRow {
    pub(crate) version: ModelVersion,
    /// Once it is ready.
    pub(crate) result: Option<TrainingResult>,
    pub(crate) claims: Claims,
    /// Facts of the claim that holds the training.
    pub(crate) attempt: Attempt,
}

/// Facts of one claim to a training.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) token: Option<ReportTokenHash>,
    /// Object that the training may upload.
    pub(crate) artifact: Option<ObjectKey>,
    pub(crate) reported: Reported,
}

impl VersionRow {
    pub(crate) fn new(version: ModelVersion) -> Self {
        Self {
            version,
            result: None,
            claims: Claims::default(),
            attempt: Attempt::default(),
        }
    }

    /// Returns true if the object is its artifact, or may become it.
    pub(crate) fn refers_to(&self, object: ObjectKey) -> bool {
        let artifact = self.version.artifact.map(|artifact| artifact.object);
        artifact == Some(object) || self.attempt.artifact == Some(object)
    }

    /// Ends the lease, and with it the permission to report and to upload.
    pub(crate) fn release(&mut self) {
        self.claims.release();
        self.attempt = Attempt::default();
    }
}
