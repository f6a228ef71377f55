//! Datasets, models and trainings.

pub(crate) mod records;
mod rows;
pub(crate) mod trainings;
pub(crate) mod version_rows;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{DatasetId, OrganizationId},
    models::Dataset,
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{PortError, models::DatasetRepository};

use crate::{
    database::{
        errors::{Fault, port_error},
        paging::page_of,
        pool::Database,
    },
    models::rows::{DatasetRow, NewDatasetRow},
    schema::dataset,
};

/// Datasets in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgDatasetRepository {
    database: Database,
}

impl PgDatasetRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl DatasetRepository for PgDatasetRepository {
    async fn add(&self, organization: OrganizationId, dataset: &Dataset) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::insert_into(dataset::table)
            .values(NewDatasetRow::of(organization, dataset)?)
            .execute(&mut connection)
            .await
            .map_err(|error| {
                Fault::from(error)
                    .on_violation("dataset_created_by_fkey", || PortError::NotFound("user"))
            })?;
        Ok(())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<Dataset>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let query = dataset::table
            .filter(dataset::organization_id.eq(organization.as_uuid()))
            .select(DatasetRow::as_select())
            .into_boxed();
        let rows: Vec<DatasetRow> = page_of!(query, page, dataset::created_at, dataset::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let datasets = rows.into_iter().map(Dataset::try_from);
        let datasets = datasets.collect::<Result<Vec<_>, _>>()?;
        Ok(Page::from_overfetched(datasets, page.limit, |dataset| {
            Cursor {
                at: dataset.created_at,
                id: dataset.id.as_uuid(),
            }
        }))
    }

    async fn get(&self, organization: OrganizationId, id: DatasetId) -> Result<Dataset, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row = dataset::table
            .find(id.as_uuid())
            .filter(dataset::organization_id.eq(organization.as_uuid()))
            .select(DatasetRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound("dataset"))?.try_into()
    }
}
