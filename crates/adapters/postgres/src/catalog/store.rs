//! The catalog store: pictures of the definitions, and changes to them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Bool, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{
        Alteration, Catalog, CatalogChange, CatalogVersion, Column, Origin, Table, TableDefinition,
    },
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    catalog::{CatalogStore, DefineError},
};

use super::{
    ddl,
    load::{LoadError, load_catalog},
    lock_key,
};
use crate::{
    data::Failure,
    database::{errors::port_error, pool::Database, sql::Schemas, transaction},
};

/// The most organizations whose catalogs are kept in memory.
const MAX_PICTURES: usize = 1000;

/// Definitions of tables in PostgreSQL.
pub struct PgCatalogStore {
    database: Database,
    pictures: Mutex<HashMap<OrganizationId, Arc<Catalog>>>,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = BigInt)]
    catalog_version: i64,
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

#[derive(QueryableByName)]
struct Exists {
    #[diesel(sql_type = Bool)]
    found: bool,
}

impl PgCatalogStore {
    /// A store over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self {
            database,
            pictures: Mutex::new(HashMap::new()),
        }
    }

    /// The picture of that version, if it is at hand.
    pub(crate) fn picture(
        &self,
        organization: OrganizationId,
        version: CatalogVersion,
    ) -> Option<Arc<Catalog>> {
        let pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        pictures
            .get(&organization)
            .filter(|catalog| catalog.version == version)
            .map(Arc::clone)
    }

    fn keep(&self, organization: OrganizationId, catalog: Catalog) -> Arc<Catalog> {
        let catalog = Arc::new(catalog);
        let mut pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        if pictures.len() >= MAX_PICTURES {
            pictures.clear();
        }
        let newer = pictures
            .get(&organization)
            .is_some_and(|kept| kept.version > catalog.version);
        if !newer {
            pictures.insert(organization, Arc::clone(&catalog));
        }
        catalog
    }

    /// [`CatalogStore::snapshot`] over a connection that is at hand.
    pub(crate) async fn snapshot_on(
        &self,
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
    ) -> Result<Arc<Catalog>, PortError> {
        let version: Option<Version> =
            diesel::sql_query("SELECT catalog_version FROM labdata.organization WHERE id = $1")
                .bind::<SqlUuid, _>(organization.as_uuid())
                .get_result(connection)
                .await
                .optional()
                .map_err(port_error)?;
        let version = version.ok_or(PortError::NotFound("organization"))?;
        if let Some(picture) = self.picture(organization, CatalogVersion(version.catalog_version)) {
            return Ok(picture);
        }
        match load_catalog(connection, organization).await {
            Ok(catalog) => Ok(self.keep(organization, catalog)),
            Err(LoadError::Database(error)) => Err(port_error(error)),
            Err(LoadError::Port(error)) => Err(error),
        }
    }

    async fn change(
        &self,
        organization: OrganizationId,
        change: Change<'_>,
    ) -> Result<Arc<Catalog>, DefineError> {
        let mut connection = self.database.connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        match change.carry_out(&mut connection, organization).await {
            Ok(catalog) => {
                transaction::commit(&mut connection)
                    .await
                    .map_err(|error| explain(error.into()))?;
                Ok(self.keep(organization, catalog))
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
        let mut connection = self.database.connection().await?;
        self.snapshot_on(&mut connection, organization).await
    }

    async fn recent(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError> {
        let kept = {
            let pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
            pictures.get(&organization).map(Arc::clone)
        };
        match kept {
            Some(picture) => Ok(picture),
            None => self.snapshot(organization).await,
        }
    }

    async fn define(
        &self,
        organization: OrganizationId,
        definition: &TableDefinition,
    ) -> Result<Arc<Table>, DefineError> {
        let catalog = self
            .change(organization, Change::Define(definition))
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
    ) -> Result<(), DefineError> {
        self.change(organization, Change::Drop { name, force })
            .await
            .map(|_| ())
    }
}

enum Change<'c> {
    Define(&'c TableDefinition),
    Drop { name: &'c str, force: bool },
}

impl Change<'_> {
    /// Takes the organization's lock, compares with what stands then, and does what is missing.
    async fn carry_out(
        &self,
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
    ) -> Result<Catalog, DefineError> {
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
            .bind::<BigInt, _>(lock_key(organization))
            .execute(connection)
            .await
            .map_err(port_error)?;
        let standing = load(connection, organization).await?;
        let schemas = Schemas::of(organization);
        let changed = match self {
            Self::Define(definition) => {
                define(connection, organization, &schemas, &standing, definition).await?
            }
            Self::Drop { name, force } => {
                drop_table(
                    connection,
                    organization,
                    &schemas,
                    &standing,
                    (*name, *force),
                )
                .await?;
                true
            }
        };
        if !changed {
            return Ok(standing);
        }
        diesel::sql_query(
            "UPDATE labdata.organization SET catalog_version = catalog_version + 1 WHERE id = $1",
        )
        .bind::<SqlUuid, _>(organization.as_uuid())
        .execute(connection)
        .await
        .map_err(port_error)?;
        load(connection, organization).await
    }
}

async fn load(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<Catalog, DefineError> {
    load_catalog(connection, organization)
        .await
        .map_err(|error| match error {
            LoadError::Database(error) => port_error(error).into(),
            LoadError::Port(error) => error.into(),
        })
}

/// Stored data that contradicts a change is the asker's business; all else is the port's.
fn explain(failure: Failure) -> DefineError {
    match failure {
        Failure::Problems(problems) => {
            let messages: Vec<String> = problems
                .into_iter()
                .map(|problem| problem.message)
                .collect();
            DefineError::Refused(format!(
                "the stored rows do not allow it: {}",
                messages.join("; ")
            ))
        }
        other => DefineError::Port(other.into_port_error()),
    }
}

async fn run(connection: &mut AsyncPgConnection, statements: &[String]) -> Result<(), DefineError> {
    for statement in statements {
        connection
            .batch_execute(statement)
            .await
            .map_err(|error| explain(error.into()))?;
    }
    Ok(())
}

async fn define(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    schemas: &Schemas,
    standing: &Catalog,
    definition: &TableDefinition,
) -> Result<bool, DefineError> {
    let change = CatalogChange::towards(definition, standing)
        .map_err(|refusal| DefineError::Refused(refusal.to_string()))?;
    match change {
        CatalogChange::Nothing => return Ok(false),
        CatalogChange::Create(table) => {
            run(connection, &ddl::create_table(schemas, &table)).await?;
            let created: Id = diesel::sql_query(
                "INSERT INTO labdata.catalog_table (organization_id, name, description, semantic_category) \
                 VALUES ($1, $2, $3, $4) RETURNING id",
            )
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<Text, _>(&table.name)
            .bind::<Nullable<Text>, _>(&table.description)
            .bind::<Text, _>(table.category.as_str())
            .get_result(connection)
            .await
            .map_err(port_error)?;
            for (position, column) in table.columns.iter().enumerate() {
                save_column(connection, created.id, position, column).await?;
            }
            save_unique_together(connection, created.id, &table).await?;
        }
        CatalogChange::Alter(alteration) => {
            let Alteration { before, after, .. } = alteration.as_ref();
            let Some(id) = before.id else {
                return Err(DefineError::Refused(format!(
                    "\"{}\" is a core table and cannot be changed",
                    before.name
                )));
            };
            run(connection, &ddl::alter_table(schemas, &alteration)).await?;
            diesel::sql_query("UPDATE labdata.catalog_table SET description = $2 WHERE id = $1")
                .bind::<BigInt, _>(id)
                .bind::<Nullable<Text>, _>(&after.description)
                .execute(connection)
                .await
                .map_err(port_error)?;
            for (position, column) in after.columns.iter().enumerate() {
                save_column(connection, id, position, column).await?;
            }
            save_unique_together(connection, id, after).await?;
        }
    }
    Ok(true)
}

async fn save_column(
    connection: &mut AsyncPgConnection,
    table: i64,
    position: usize,
    column: &Column,
) -> Result<(), DefineError> {
    diesel::sql_query(
        "INSERT INTO labdata.catalog_column (table_id, position, name, description, data_type, is_primary_key, \
         is_nullable, is_unique, default_value, references_table) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
         ON CONFLICT (table_id, name) DO UPDATE SET position = excluded.position, description = excluded.description, \
         is_nullable = excluded.is_nullable, is_unique = excluded.is_unique, default_value = excluded.default_value",
    )
    .bind::<BigInt, _>(table)
    .bind::<Integer, _>(i32::try_from(position).unwrap_or(i32::MAX))
    .bind::<Text, _>(&column.name)
    .bind::<Nullable<Text>, _>(&column.description)
    .bind::<Text, _>(column.data_type.as_str())
    .bind::<Bool, _>(column.is_primary_key)
    .bind::<Bool, _>(column.is_nullable)
    .bind::<Bool, _>(column.is_unique)
    .bind::<Nullable<Jsonb>, _>(&column.default)
    .bind::<Nullable<Text>, _>(&column.references)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

async fn save_unique_together(
    connection: &mut AsyncPgConnection,
    id: i64,
    table: &Table,
) -> Result<(), DefineError> {
    diesel::sql_query("DELETE FROM labdata.catalog_unique WHERE table_id = $1")
        .bind::<BigInt, _>(id)
        .execute(connection)
        .await
        .map_err(port_error)?;
    for (position, group) in table.unique_together.iter().enumerate() {
        diesel::sql_query(
            "INSERT INTO labdata.catalog_unique (table_id, position, columns) VALUES ($1, $2, $3)",
        )
        .bind::<BigInt, _>(id)
        .bind::<Integer, _>(i32::try_from(position).unwrap_or(i32::MAX))
        .bind::<Array<Text>, _>(group)
        .execute(connection)
        .await
        .map_err(port_error)?;
    }
    Ok(())
}

async fn drop_table(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    schemas: &Schemas,
    standing: &Catalog,
    (name, force): (&str, bool),
) -> Result<(), DefineError> {
    let Some(table) = standing.table(name) else {
        return Err(PortError::NotFound("table").into());
    };
    if table.origin == Origin::Core {
        return Err(DefineError::Refused(format!(
            "\"{name}\" is a core table and cannot be dropped"
        )));
    }
    let mut referencing: Vec<&str> = standing
        .referencing(name)
        .map(|(other, _)| other.name.as_str())
        .filter(|other| *other != name)
        .collect();
    referencing.dedup();
    if !referencing.is_empty() {
        return Err(DefineError::Refused(format!(
            "\"{name}\" is referenced by {}; drop those tables first",
            referencing.join(", ")
        )));
    }
    if !force {
        let stored = if table.is_raw() {
            schemas.chunk_table(name)
        } else {
            schemas.table(name)
        };
        let filled: Exists = crate::database::sql::statement(format!(
            "SELECT EXISTS (SELECT 1 FROM {stored}) AS found"
        ))
        .get_result(connection)
        .await
        .map_err(port_error)?;
        if filled.found {
            return Err(DefineError::Refused(format!(
                "\"{name}\" is not empty; ?force=true drops it with its rows"
            )));
        }
    }
    run(connection, &ddl::drop_table(schemas, table)).await?;
    diesel::sql_query("DELETE FROM labdata.catalog_table WHERE organization_id = $1 AND name = $2")
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(name)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}
