//! Datasets, models and trainings.

pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod training_ends;
pub(crate) mod trainings;
pub(crate) mod version_rows;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{TableAccess, TableIdentity},
    files::ObjectKey,
    ids::{DatasetId, OrganizationId},
    models::{Dataset, DatasetMask},
    page::{Cursor, Page, PageRequest},
    people::visible_tables::VisibleTables,
    refusal::Resource,
    storage::{InsufficientStorage, StorageQuota},
};
use labdata_ports::{
    PortError,
    models::{AddDatasetError, DatasetRepository},
};

use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    files::usage::{check_quota, lock_usage},
    models::rows::{DatasetRow, NewDatasetRow},
    schema::{dataset, dataset_mask},
};

/// Number of masks that one statement inserts; each has four values.
const MASKS_PER_INSERT: usize = 1_000;

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
    masks: &[DatasetMask],
    quota: StorageQuota,
) -> Result<Result<(), InsufficientStorage>, Fault> {
    // Without a quota nothing depends on the sum, and uploads need not wait for datasets.
    if quota.is_limited() {
        lock_usage(connection, organization).await?;
        let size = dataset.size + masks.iter().map(|mask| mask.size).sum::<u64>();
        let room = check_quota(connection, organization, quota, size).await?;
        if room.is_err() {
            return Ok(room);
        }
    }
    diesel::insert_into(dataset::table)
        .values(NewDatasetRow::of(organization, dataset)?)
        .execute(connection)
        .await?;
    for masks in masks.chunks(MASKS_PER_INSERT) {
        let rows = masks.iter().map(|mask| {
            let size = i64::try_from(mask.size);
            let size = size.map_err(|error| PortError::Internal(error.to_string()))?;
            Ok((
                dataset_mask::organization_id.eq(organization.as_uuid()),
                dataset_mask::id.eq(mask.object.as_uuid()),
                dataset_mask::dataset_id.eq(dataset.id.as_uuid()),
                dataset_mask::size_bytes.eq(size),
            ))
        });
        diesel::insert_into(dataset_mask::table)
            .values(rows.collect::<Result<Vec<_>, PortError>>()?)
            .execute(connection)
            .await?;
    }
    Ok(Ok(()))
}

/// Removes a table that goes for good from the tables of datasets, if everyone could read it. With
/// any other table, only who sees everything sees them from now on.
pub(crate) async fn forget_table(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &TableIdentity,
    access: &TableAccess,
) -> Result<(), PortError> {
    if !access.is_read_by_all() {
        return Ok(());
    }
    diesel::sql_query(
        "UPDATE labdata.dataset SET tables = array_remove(tables, $2) \
         WHERE organization_id = $1 AND tables @> ARRAY[$2]",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(table.to_string())
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

#[async_trait]
impl DatasetRepository for PgDatasetRepository {
    async fn add_with_masks(
        &self,
        organization: OrganizationId,
        dataset: &Dataset,
        masks: &[DatasetMask],
        quota: StorageQuota,
    ) -> Result<(), AddDatasetError> {
        let database = self.database.of(organization);
        let added: Result<_, Fault> = transacted!(
            database,
            connection => add(connection, organization, dataset, masks, quota)
        );
        let added = added.map_err(|fault| {
            let unknown_user = || PortError::NotFound(Resource::User);
            PortError::from(fault.on_violation("dataset_created_by_fkey", unknown_user))
        })?;
        added.map_err(AddDatasetError::InsufficientStorage)
    }

    async fn has_mask(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<bool, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let found: Option<Uuid> = dataset_mask::table
            .find((organization.as_uuid(), object.as_uuid()))
            .select(dataset_mask::id)
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        Ok(found.is_some())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        visible: &VisibleTables,
        page: PageRequest,
    ) -> Result<Page<Dataset>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let mut query = dataset::table
            .filter(dataset::organization_id.eq(organization.as_uuid()))
            .select(DatasetRow::as_select())
            .into_boxed();
        if let Some(tables) = visible.identities() {
            query = query.filter(dataset::tables.is_contained_by(tables));
        }
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
