//! Records of models in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{ModelId, OrganizationId},
    models::{
        ActivateError, ModelArchived, ModelVersion, NameTaken, NewModel, NewVersion,
        NothingInFlight, TrainingQueueFull, TrainingResult, VersionState, check_pending_trainings,
    },
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
    work::WorkId,
};
use labdata_ports::{
    PortError,
    models::{
        ActivateModelError, AddVersionError, CancelTrainingError, CreateModelError, ModelFilter,
        ModelRepository, RestoreModelError,
    },
};
use time::OffsetDateTime;

use crate::{
    memory::{Owned, State, fake, owned},
    models::rows::VersionRow,
    paging::page,
};

fake!(
    /// Records of models in memory.
    pub struct InMemoryModelRepository;
);

impl State {
    /// Refuses a version whose user or dataset the organization does not have.
    fn require_parents(
        &self,
        organization: OrganizationId,
        version: &NewVersion,
    ) -> Result<(), PortError> {
        self.require_user(organization, version.requested_by)?;
        let mut datasets = owned(&self.datasets, organization);
        if datasets.any(|dataset| dataset.id == version.dataset) {
            Ok(())
        } else {
            Err(PortError::NotFound(Resource::Dataset))
        }
    }

    /// Refuses another training beside as many that wait as may.
    fn check_queue(&self, organization: OrganizationId) -> Result<(), TrainingQueueFull> {
        let pending = owned(&self.model_versions, organization)
            .filter(|row| row.version.state == VersionState::Pending)
            .count();
        check_pending_trainings(u64::try_from(pending).unwrap_or(u64::MAX))
    }

    fn queue_version(&mut self, organization: OrganizationId, version: &ModelVersion) {
        self.model_versions.push(Owned {
            organization,
            thing: VersionRow {
                version: version.clone(),
                result: None,
            },
        });
        let work = WorkId::Training(version.version);
        self.queue_work(organization, work, version.requested_at);
    }

    /// The newest version of the model of that name that is not archived.
    fn named(&mut self, organization: OrganizationId, name: &str) -> Option<ModelVersion> {
        let model = owned(&self.model_versions, organization)
            .find(|row| row.version.name == name && !row.version.archived)
            .map(|row| row.version.model)?;
        self.newest_version(organization, model).ok()
    }
}

fn cursor(version: &ModelVersion) -> Cursor {
    Cursor {
        at: version.requested_at,
        id: version.version.as_uuid(),
    }
}

#[async_trait]
impl ModelRepository for InMemoryModelRepository {
    async fn create(
        &self,
        organization: OrganizationId,
        model: &NewModel,
        version: &NewVersion,
    ) -> Result<ModelVersion, CreateModelError> {
        let mut state = self.memory.lock();
        state.check_queue(organization)?;
        state.require_parents(organization, version)?;
        if state.named(organization, &model.name).is_some() {
            return Err(NameTaken(model.name.clone()).into());
        }
        let queued = ModelVersion::queue(model, 1, version);
        state.queue_version(organization, &queued);
        Ok(queued)
    }

    async fn add_version(
        &self,
        organization: OrganizationId,
        model: ModelId,
        version: &NewVersion,
    ) -> Result<ModelVersion, AddVersionError> {
        let mut state = self.memory.lock();
        state.check_queue(organization)?;
        let newest = state.newest_version(organization, model)?;
        if newest.archived {
            return Err(ModelArchived.into());
        }
        state.require_parents(organization, version)?;
        let model = NewModel {
            id: model,
            name: newest.name,
        };
        let queued = ModelVersion::queue(&model, newest.number + 1, version);
        state.queue_version(organization, &queued);
        Ok(queued)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: ModelFilter,
        request: PageRequest,
    ) -> Result<Page<ModelVersion>, PortError> {
        let mut state = self.memory.lock();
        let is_listed = |version: &ModelVersion| filter.include_archived || !version.archived;
        let first = owned(&state.model_versions, organization)
            .filter(|row| row.version.number == 1 && is_listed(&row.version))
            .map(|row| (row.version.model, row.version.requested_at));
        let first: Vec<(ModelId, OffsetDateTime)> = first.collect();
        let models = page(first.into_iter(), request, |(model, created_at)| Cursor {
            at: *created_at,
            id: model.as_uuid(),
        });
        let newest = models.items.into_iter();
        let newest = newest.map(|(model, _)| state.newest_version(organization, model));
        Ok(Page {
            items: newest.collect::<Result<_, _>>()?,
            next: models.next,
        })
    }

    async fn get(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: Option<u32>,
    ) -> Result<ModelVersion, PortError> {
        let mut state = self.memory.lock();
        let newest = state.newest_version(organization, model)?;
        let Some(number) = number else {
            return Ok(newest);
        };
        let mut versions = state.versions_mut(organization, model);
        let found = versions.find(|row| row.version.number == number);
        let found = found.ok_or(PortError::NotFound(Resource::ModelVersion))?;
        Ok(found.version.clone())
    }

    async fn versions(
        &self,
        organization: OrganizationId,
        model: ModelId,
        request: PageRequest,
    ) -> Result<Page<ModelVersion>, PortError> {
        let mut state = self.memory.lock();
        state.newest_version(organization, model)?;
        let versions = state.versions_mut(organization, model);
        let versions = versions.map(|row| row.version.clone());
        Ok(page(versions, request, cursor))
    }

    async fn find_by_name(
        &self,
        organization: OrganizationId,
        name: &str,
    ) -> Result<Option<ModelVersion>, PortError> {
        Ok(self.memory.lock().named(organization, name))
    }

    async fn active(
        &self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<Option<ModelVersion>, PortError> {
        let mut state = self.memory.lock();
        state.newest_version(organization, model)?;
        let mut versions = state.versions_mut(organization, model);
        let active = versions.find(|row| row.version.is_active);
        Ok(active.map(|row| row.version.clone()))
    }

    async fn result(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) -> Result<Option<TrainingResult>, PortError> {
        let mut state = self.memory.lock();
        let mut versions = state.versions_mut(organization, model);
        let found = versions.find(|row| row.version.number == number);
        let found = found.ok_or(PortError::NotFound(Resource::ModelVersion))?;
        Ok(found.result.clone())
    }

    async fn activate(
        &self,
        organization: OrganizationId,
        model: ModelId,
        number: u32,
    ) -> Result<ModelVersion, ActivateModelError> {
        let mut state = self.memory.lock();
        if state.newest_version(organization, model)?.archived {
            return Err(ModelArchived.into());
        }
        let found = state
            .versions_mut(organization, model)
            .find(|row| row.version.number == number);
        let version = found.ok_or(ActivateError::Unknown(number))?.version.clone();
        version.check_activation()?;
        state.activate_version(organization, model, number);
        Ok(ModelVersion {
            is_active: true,
            ..version
        })
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, CancelTrainingError> {
        let mut state = self.memory.lock();
        state.newest_version(organization, model)?;
        if state.cancel_trainings(organization, model, now) == 0 {
            return Err(NothingInFlight.into());
        }
        Ok(state.newest_version(organization, model)?)
    }

    async fn archive(
        &self,
        organization: OrganizationId,
        model: ModelId,
        now: OffsetDateTime,
    ) -> Result<ModelVersion, PortError> {
        let mut state = self.memory.lock();
        state.newest_version(organization, model)?;
        state.cancel_trainings(organization, model, now);
        for row in state.versions_mut(organization, model) {
            row.version.archived = true;
        }
        state.newest_version(organization, model)
    }

    async fn restore(
        &self,
        organization: OrganizationId,
        model: ModelId,
    ) -> Result<ModelVersion, RestoreModelError> {
        let mut state = self.memory.lock();
        let newest = state.newest_version(organization, model)?;
        if !newest.archived {
            return Ok(newest);
        }
        if state.named(organization, &newest.name).is_some() {
            return Err(NameTaken(newest.name).into());
        }
        for row in state.versions_mut(organization, model) {
            row.version.archived = false;
        }
        Ok(state.newest_version(organization, model)?)
    }
}
