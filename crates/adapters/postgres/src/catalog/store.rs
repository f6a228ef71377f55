//! The catalog store: cached snapshots of the definitions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Catalog, CatalogVersion, Table, TableDefinition},
    ids::OrganizationId,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    catalog::{CatalogStore, DefineError},
};
use time::OffsetDateTime;

use super::{
    change::{Change, define_error},
    load::{LoadError, load_catalog},
};
use crate::database::{
    errors::{Fault, port_error},
    pool::Database,
    sql::CachedStatement,
    transaction,
};

/// Maximum number of cached snapshots.
const MAX_CACHED: usize = 1000;

/// Definitions of tables in PostgreSQL.
pub struct PgCatalogStore {
    database: Database,
    snapshots: Arc<Mutex<HashMap<OrganizationId, Arc<Catalog>>>>,
}

#[derive(QueryableByName)]
struct VersionRow {
    #[diesel(sql_type = BigInt)]
    catalog_version: i64,
}

impl PgCatalogStore {
    /// A store over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self {
            database,
            snapshots: Arc::default(),
        }
    }

    /// The same on that database, with the same cache.
    pub(crate) fn on(&self, database: Database) -> Self {
        Self {
            database,
            snapshots: Arc::clone(&self.snapshots),
        }
    }

    /// The snapshot of that version, if it is cached.
    pub(crate) fn cached(
        &self,
        organization: OrganizationId,
        version: CatalogVersion,
    ) -> Option<Arc<Catalog>> {
        let snapshots = self
            .snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        snapshots
            .get(&organization)
            .filter(|catalog| catalog.version == version)
            .map(Arc::clone)
    }

    fn cache(&self, organization: OrganizationId, catalog: Catalog) -> Arc<Catalog> {
        let catalog = Arc::new(catalog);
        // What a unit of work has defined may be rolled back, and its version then be that of something else.
        if self.database.is_bound() {
            return catalog;
        }
        let mut snapshots = self
            .snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Emptied as a whole: that is rare, and spares a record of each use.
        if snapshots.len() >= MAX_CACHED {
            snapshots.clear();
        }
        // A slow reader may arrive after a change; the newer snapshot must not be replaced by its older one.
        let newer = snapshots
            .get(&organization)
            .is_some_and(|cached| cached.version > catalog.version);
        if !newer {
            snapshots.insert(organization, Arc::clone(&catalog));
        }
        catalog
    }

    /// [`CatalogStore::snapshot`] over a given connection.
    pub(crate) async fn snapshot_on(
        &self,
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
    ) -> Result<Arc<Catalog>, PortError> {
        let query =
            diesel::sql_query("SELECT catalog_version FROM labdata.organization WHERE id = $1")
                .bind::<SqlUuid, _>(organization.as_uuid());
        // Prepared, because this runs before every read and write of data.
        let version: Option<VersionRow> = CachedStatement(query)
            .get_result(connection)
            .await
            .optional()
            .map_err(port_error)?;
        let version = version.ok_or(PortError::NotFound(Resource::Organization))?;
        if let Some(cached) = self.cached(organization, CatalogVersion(version.catalog_version)) {
            return Ok(cached);
        }
        match load_catalog(connection, organization).await {
            Ok(catalog) => Ok(self.cache(organization, catalog)),
            Err(LoadError::Database(error)) => Err(port_error(error)),
            Err(LoadError::Port(error)) => Err(error),
        }
    }

    async fn change(
        &self,
        organization: OrganizationId,
        change: Change<'_>,
        now: OffsetDateTime,
    ) -> Result<Arc<Catalog>, DefineError> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        match change.carry_out(&mut connection, organization, now).await {
            Ok(catalog) => {
                match transaction::commit(&mut connection).await {
                    Ok(()) => {}
                    Err(Fault::Database(error)) => return Err(define_error(error)),
                    Err(Fault::Port(error)) => return Err(error.into()),
                }
                // After the commit: others must not read tables that a failure would undo.
                Ok(self.cache(organization, catalog))
            }
            Err(error) => {
                transaction::rollback(&mut connection).await;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl CatalogStore for PgCatalogStore {
    async fn snapshot(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        self.snapshot_on(&mut connection, organization).await
    }

    async fn recent(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError> {
        // A block, so that the lock is released before the await below.
        let cached = {
            let snapshots = self
                .snapshots
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            snapshots.get(&organization).map(Arc::clone)
        };
        match cached {
            Some(snapshot) => Ok(snapshot),
            None => self.snapshot(organization).await,
        }
    }

    async fn define(
        &self,
        organization: OrganizationId,
        definition: &TableDefinition,
        now: OffsetDateTime,
    ) -> Result<Arc<Table>, DefineError> {
        let catalog = self
            .change(organization, Change::Define(definition), now)
            .await?;
        let table = catalog.table(&definition.name);
        table
            .map(Arc::clone)
            .ok_or_else(|| PortError::Internal("a defined table is missing".to_owned()).into())
    }

    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
        now: OffsetDateTime,
    ) -> Result<(), DefineError> {
        self.change(organization, Change::Drop { name, force }, now)
            .await
            .map(|_| ())
    }

    async fn drop_column(
        &self,
        organization: OrganizationId,
        table: &str,
        column: &str,
        force: bool,
        now: OffsetDateTime,
    ) -> Result<(), DefineError> {
        let change = Change::DropColumn {
            table,
            column,
            force,
        };
        self.change(organization, change, now).await.map(|_| ())
    }
}
