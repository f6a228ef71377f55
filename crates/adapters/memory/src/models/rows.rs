//! Rows of models' versions in memory.

use labdata_domain::{
    files::ObjectKey,
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::{ModelVersion, ReportTokenHash, TrainingResult},
};
use labdata_ports::{PortError, models::Reported};

use crate::{memory::State, runs::rows::Claims};

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

impl State {
    /// The rows of a model's versions.
    pub(crate) fn versions_mut(
        &mut self,
        organization: OrganizationId,
        model: ModelId,
    ) -> impl Iterator<Item = &mut VersionRow> {
        self.model_versions
            .iter_mut()
            .filter(move |row| row.organization == organization)
            .map(|row| &mut row.thing)
            .filter(move |row| row.version.model == model)
    }

    /// The newest version of a model.
    pub(crate) fn newest_version(
        &mut self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<ModelVersion, PortError> {
        let versions = self.versions_mut(organization, model);
        let newest = versions.max_by_key(|row| row.version.number);
        let newest = newest.ok_or(PortError::NotFound("ML model"))?;
        Ok(newest.version.clone())
    }

    /// The row of a version.
    pub(crate) fn version_mut(&mut self, id: ModelVersionId) -> Option<&mut VersionRow> {
        let mut rows = self.model_versions.iter_mut().map(|row| &mut row.thing);
        rows.find(|row| row.version.version == id)
    }

    /// Makes a version of a model the active one.
    pub(crate) fn activate_version(
        &mut self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) {
        for row in self.versions_mut(organization, model) {
            row.version.is_active = row.version.number == number;
        }
    }
}
