//! Datasets, models and trainings.

pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod training_ends;
pub(crate) mod trainings;
pub(crate) mod version_rows;

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{DatasetId, OrganizationId},
    models::Dataset,
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
    storage::{InsufficientStorage, StorageQuota},
};
use labdata_ports::{
    PortError,
    models::{AddDatasetError, DatasetRepository},
};

use crate::{
    database::{
        errors::{Fault, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    files::usage::{check_quota, lock_usage},
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

async fn add(
    connection: &mut Connection,
    organization: OrganizationId,
    dataset: &Dataset,
    quota: StorageQuota,
) -> Result<Result<(), InsufficientStorage>, Fault> {
    // Without a quota nothing depends on the sum, and uploads need not wait for datasets.
    if quota.is_limited() {
        lock_usage(connection, organization).await?;
        let room = check_quota(connection, organization, quota, dataset.size).await?;
        if room.is_err() {
            return Ok(room);
        }
    }
    diesel::insert_into(dataset::table)
        .values(NewDatasetRow::of(organization, dataset)?)
        .execute(connection)
        .await?;
    Ok(Ok(()))
}

#[async_trait]
impl DatasetRepository for PgDatasetRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        dataset: &Dataset,
        quota: StorageQuota,
    ) -> Result<(), AddDatasetError> {
        let database = self.database.of(organization);
        let added: Result<_, Fault> =
            transacted!(database, connection => add(connection, organization, dataset, quota));
        let added = added.map_err(|fault| {
            let unknown_user = || PortError::NotFound(Resource::User);
            PortError::from(fault.on_violation("dataset_created_by_fkey", unknown_user))
        })?;
        added.map_err(AddDatasetError::InsufficientStorage)
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
        row.ok_or(PortError::NotFound(Resource::Dataset))?
            .try_into()
    }
}
