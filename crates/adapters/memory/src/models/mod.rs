//! Datasets, models and trainings in memory, and a predictor without models.

mod predictor;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod trainings;
mod versions;

pub use predictor::InMemoryPredictor;

use async_trait::async_trait;
use labdata_domain::{
    catalog::Table,
    files::ObjectKey,
    ids::{DatasetId, OrganizationId},
    models::{Dataset, DatasetMask},
    page::{Cursor, Page, PageRequest},
    people::visible_tables::VisibleTables,
    refusal::Resource,
    storage::StorageQuota,
};
use labdata_ports::{
    PortError,
    models::{AddDatasetError, DatasetRepository},
};

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

fake!(
    /// Datasets in memory.
    pub struct InMemoryDatasetRepository;
);

#[async_trait]
impl DatasetRepository for InMemoryDatasetRepository {
    async fn add_with_masks(
        &self,
        organization: OrganizationId,
        dataset: &Dataset,
        masks: &[DatasetMask],
        quota: StorageQuota,
    ) -> Result<(), AddDatasetError> {
        let mut state = self.memory.lock();
        state.require_user(organization, dataset.created_by)?;
        let used = state.confirmed_bytes(organization);
        quota
            .check(used, dataset.size + size_of_masks(masks))
            .map_err(AddDatasetError::InsufficientStorage)?;
        state.datasets.push(Owned {
            organization,
            thing: dataset.clone(),
        });
        state.dataset_masks.extend(masks.iter().map(|mask| Owned {
            organization,
            thing: *mask,
        }));
        Ok(())
    }

    async fn has_mask(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<bool, PortError> {
        let state = self.memory.lock();
        Ok(owned(&state.dataset_masks, organization).any(|mask| mask.object == object))
    }

    async fn list(
        &self,
        organization: OrganizationId,
        visible: &VisibleTables,
        request: PageRequest,
    ) -> Result<Page<Dataset>, PortError> {
        let state = self.memory.lock();
        let datasets = owned(&state.datasets, organization);
        let datasets = datasets
            .filter(|dataset| visible.include_all(&dataset.tables))
            .cloned();
        Ok(page(datasets, request, |dataset| Cursor {
            at: dataset.created_at,
            id: dataset.id.as_uuid(),
        }))
    }

    async fn get(&self, organization: OrganizationId, id: DatasetId) -> Result<Dataset, PortError> {
        owned(&self.memory.lock().datasets, organization)
            .find(|dataset| dataset.id == id)
            .cloned()
            .ok_or(PortError::NotFound(Resource::Dataset))
    }
}

impl State {
    /// Removes a table that goes for good from the tables of datasets, if everyone could read it.
    pub(crate) fn forget_table_of_datasets(&mut self, organization: OrganizationId, table: &Table) {
        if !table.access.is_read_by_all() {
            return;
        }
        for dataset in &mut self.datasets {
            if dataset.organization == organization {
                dataset.thing.tables.remove(&table.identity());
            }
        }
    }
}

fn size_of_masks(masks: &[DatasetMask]) -> u64 {
    masks.iter().map(|mask| mask.size).sum()
}
