//! Finds versions of models in memory.

use labdata_domain::{
    ids::{ModelId, ModelVersionId, OrganizationId},
    models::ModelVersion,
    refusal::Resource,
};
use labdata_ports::PortError;

use super::rows::VersionRow;
use crate::memory::State;

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
        let newest = newest.ok_or(PortError::NotFound(Resource::Model))?;
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
