//! Records of files.

mod change;
pub(crate) mod conditions;
pub(crate) mod list;
pub(crate) mod rows;
pub(crate) mod search_index;
pub(crate) mod sweep;
pub(crate) mod usage;

pub(crate) use change::{add_of_write, delete, locked};

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    files::{File, FileFilter, FileState, ObjectKey, Recorded, StoredBytes},
    ids::{FileId, OrganizationId},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
    storage::{BytesByKind, StorageQuota},
};
use labdata_ports::{
    PortError,
    files::{AddFileError, ConfirmFileError, FileRepository},
};
use time::OffsetDateTime;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, retried, transacted},
        pool::Database,
        transaction,
    },
    files::{
        change::{add, confirm},
        list::{SearchLimits, read_page},
        rows::{FileRow, size_column},
        usage::{Counted, bytes_by_kind, used_bytes},
    },
    maintenance::backup,
    schema::file,
};

/// Records of files in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgFileRepository {
    database: Database,
    limits: SearchLimits,
}

impl PgFileRepository {
    /// Creates the repository over a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self {
            database,
            limits: SearchLimits::default(),
        }
    }

    /// Replaces the limits of searches.
    #[must_use]
    pub fn with_search_limits(self, limits: SearchLimits) -> Self {
        Self { limits, ..self }
    }

    async fn add_once(
        &self,
        organization: OrganizationId,
        file: &File,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<Result<Recorded, AddFileError>, Fault> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection).await?;
        let outcome = add(&mut connection, organization, file, quota, now).await;
        transaction::end(&mut connection, outcome).await
    }

    async fn confirm_once(
        &self,
        organization: OrganizationId,
        id: FileId,
        confirmed: FileState,
        quota: StorageQuota,
    ) -> Result<Result<(File, bool), ConfirmFileError>, Fault> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection).await?;
        let outcome = confirm(&mut connection, organization, id, confirmed, quota).await;
        transaction::end(&mut connection, outcome).await
    }
}

#[async_trait]
impl FileRepository for PgFileRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        file: &File,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<Recorded, AddFileError> {
        let added = retried!(self.add_once(organization, file, quota, now));
        added.map_err(PortError::from)?
    }

    async fn get(&self, organization: OrganizationId, id: FileId) -> Result<File, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<FileRow> = file::table
            .filter(file::id.eq(id.as_uuid()))
            .filter(file::organization_id.eq(organization.as_uuid()))
            .select(FileRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound(Resource::File))?.try_into()
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &FileFilter,
        page: PageRequest,
    ) -> Result<Page<File>, PortError> {
        let (database, limits) = (self.database.clone(), self.limits);
        let filter = filter.clone();
        // Cloned into a task on the runtime of the connections, which outlives the borrow of the caller.
        let reading = async move {
            let mut connection = database.of(organization).connection().await?;
            let rows = read_page(&mut connection, limits, organization, &filter, page);
            Ok::<_, PortError>(rows.await?)
        };
        let rows = self.database.beside_connections(reading).await??;
        let mut files = Vec::with_capacity(rows.len());
        for row in rows {
            let file = File::try_from(row)?;
            let place = file
                .place()
                .ok_or_else(|| corrupt("file", "status", file.id))?;
            files.push((place, file));
        }
        let page = Page::from_overfetched(files, page.limit, |(place, _): &(Cursor, File)| *place);
        Ok(Page {
            items: page.items.into_iter().map(|(_, file)| file).collect(),
            next: page.next,
        })
    }

    async fn confirm(
        &self,
        organization: OrganizationId,
        id: FileId,
        object: ObjectKey,
        bytes: StoredBytes,
        quota: StorageQuota,
        now: OffsetDateTime,
    ) -> Result<(File, bool), ConfirmFileError> {
        let confirmed = FileState::Confirmed {
            object,
            bytes,
            uploaded_at: now,
        };
        let outcome = retried!(self.confirm_once(organization, id, confirmed, quota));
        outcome.map_err(PortError::from)?
    }

    async fn used_bytes(&self, organization: OrganizationId) -> Result<u64, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        Ok(used_bytes(&mut connection, organization, Counted::Received).await?)
    }

    async fn usage(&self, organization: OrganizationId) -> Result<BytesByKind, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        bytes_by_kind(&mut connection, organization).await
    }

    async fn note_received(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        bytes: StoredBytes,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        diesel::update(
            file::table
                .filter(file::organization_id.eq(organization.as_uuid()))
                .filter(file::object_key.eq(object.as_uuid()))
                // Only while it awaits its bytes: a confirmed record has its size already.
                .filter(file::upload_expires_at.is_not_null()),
        )
        .set((
            file::size_bytes.eq(Some(size_column(bytes)?)),
            file::crc32c.eq(Some(bytes.crc32c.to_base64())),
        ))
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(())
    }

    async fn discard(
        &self,
        organization: OrganizationId,
        id: FileId,
        object: ObjectKey,
    ) -> Result<(), ConfirmFileError> {
        let mut connection = self.database.of(organization).connection().await?;
        let removed = diesel::delete(
            file::table
                .filter(file::id.eq(id.as_uuid()))
                .filter(file::organization_id.eq(organization.as_uuid()))
                .filter(file::object_key.eq(object.as_uuid()))
                .filter(file::upload_expires_at.is_not_null()),
        )
        .execute(&mut connection)
        .await
        .map_err(|error| PortError::from(Fault::from(error).of_commit()))?;
        if removed == 1 {
            return Ok(());
        }
        // Given back first: `get` asks for another one, and a caller that holds one would wait for itself.
        drop(connection);
        self.get(organization, id).await?;
        Err(ConfirmFileError::Superseded)
    }

    async fn take_expired(
        &self,
        before: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError> {
        sweep::take_expired(&self.database, before, limit).await
    }

    async fn unreferenced(
        &self,
        objects: &[(OrganizationId, ObjectKey)],
    ) -> Result<Vec<(OrganizationId, ObjectKey)>, PortError> {
        sweep::unreferenced(&self.database, objects).await
    }

    async fn are_objects_retained(&self) -> Result<bool, PortError> {
        backup::is_under_way(&self.database).await
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        id: FileId,
        now: OffsetDateTime,
    ) -> Result<File, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => delete(connection, organization, id, now)
        )?)
    }
}
