//! The trash: rows of files and definitions as JSON, tables and values of columns in a schema for each entry.
//!
//! Nothing else reads it, so no other statement needs a condition that leaves it out (docs/adr/0043).

mod columns;
mod entries;
mod files;
mod forget;
mod references;
pub(crate) mod tables;

use async_trait::async_trait;
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{KeyedTable, TableIdentity},
    files::{File, ObjectKey},
    ids::{FileId, OrganizationId, TrashId},
    page::{Page, PageRequest},
    refusal::Resource,
    scalar::KeyValue,
    trash::{Deletion, TrashEntry, TrashKind, TrashedTable},
};
use labdata_ports::{
    PortError,
    catalog::DefineError,
    trash::{PurgedEntry, RestoreError, TrashStore},
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    catalog::change::{define_error, lock_definitions},
    database::{
        errors::{Fault, port_error, transacted},
        pool::Database,
        sql::{ident, literal, schema_name},
        transaction,
    },
    maintenance::backup::keep_from_dumps,
    models::forget_table,
};

/// The trash in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgTrashStore {
    database: Database,
}

impl PgTrashStore {
    /// The trash of that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// An entry that is locked until the end of the transaction.
#[derive(QueryableByName)]
struct HeldRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<BigInt>)]
    table_id: Option<i64>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    object_key: Option<Uuid>,
    #[diesel(sql_type = Jsonb)]
    content: Value,
}

/// Quoted name of the schema of an entry.
fn entry_schema(organization: OrganizationId, number: i64) -> String {
    ident(&format!("{}_trash_{number}", schema_name(organization)))
}

/// Reads an entry and locks it.
async fn hold(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: TrashId,
) -> Result<HeldRow, PortError> {
    let row = diesel::sql_query(
        "SELECT id, number, kind, name, table_id, object_key, content FROM labdata.trash \
         WHERE organization_id = $1 AND id = $2 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(id.as_uuid())
    .get_result(connection)
    .await
    .optional()
    .map_err(port_error)?;
    row.ok_or(PortError::NotFound(Resource::TrashEntry))
}

#[derive(QueryableByName)]
struct NumberRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// A definition that moves into the trash. `content` is an expression over `labdata.catalog_table t`.
struct Dropped<'d> {
    kind: TrashKind,
    name: &'d str,
    table: i64,
    content: String,
}

/// Adds the entry of a table or a column and its schema; returns the schema's quoted name.
async fn begin_entry(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    deletion: &Deletion,
    dropped: &Dropped<'_>,
) -> Result<(i64, String), DefineError> {
    let added: NumberRow = diesel::sql_query(format!(
        "INSERT INTO labdata.trash (id, organization_id, kind, name, table_id, deleted_at, deleted_by, \
             api_key_id, purge_at, size_bytes, content) \
         SELECT $2, organization_id, $3, $4, id, $5, $6, $7, $8, 0, {} FROM labdata.catalog_table t \
         WHERE organization_id = $1 AND id = $9 RETURNING number",
        dropped.content
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<SqlUuid, _>(deletion.id.as_uuid())
    .bind::<Text, _>(dropped.kind.as_str())
    .bind::<Text, _>(dropped.name)
    .bind::<Timestamptz, _>(deletion.at)
    .bind::<SqlUuid, _>(deletion.user.as_uuid())
    .bind::<Nullable<SqlUuid>, _>(Some(deletion.api_key.as_uuid()))
    .bind::<Timestamptz, _>(deletion.purge_at)
    .bind::<BigInt, _>(dropped.table)
    .get_result(connection)
    .await
    .map_err(port_error)?;
    let schema = entry_schema(organization, added.number);
    let create = format!("CREATE SCHEMA {schema}");
    connection
        .batch_execute(&create)
        .await
        .map_err(port_error)?;
    Ok((added.number, schema))
}

/// Records the bytes of an entry's schema.
async fn measure(
    connection: &mut AsyncPgConnection,
    number: i64,
    schema: &str,
) -> Result<(), PortError> {
    let measured = format!(
        "UPDATE labdata.trash SET size_bytes = (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint \
         FROM pg_catalog.pg_class WHERE relnamespace = {}::regnamespace AND relkind = 'r') WHERE number = $1",
        literal(schema)
    );
    diesel::sql_query(measured)
        .bind::<BigInt, _>(number)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}

/// Removes the row of an entry, and its schema if it has one.
async fn remove(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
) -> Result<(), PortError> {
    if held.kind != TrashKind::File.as_str() {
        let schema = entry_schema(organization, held.number);
        let drop = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
        connection.batch_execute(&drop).await.map_err(port_error)?;
    }
    diesel::sql_query("DELETE FROM labdata.trash WHERE id = $1")
        .bind::<SqlUuid, _>(held.id)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}

/// Locks the columns in the trash of a table.
async fn columns_of(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: i64,
) -> Result<Vec<HeldRow>, PortError> {
    diesel::sql_query(
        // Ordered, so that transactions that lock several entries of a table never wait for each other in a circle.
        "SELECT id, number, kind, name, table_id, object_key, content FROM labdata.trash \
         WHERE organization_id = $1 AND table_id = $2 AND kind = 'column' ORDER BY number FOR UPDATE",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<BigInt, _>(table)
    .load(connection)
    .await
    .map_err(port_error)
}

/// Quoted names of the schemas of the columns in the trash of a table, which stay until the end of the transaction.
pub(crate) async fn column_schemas(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: i64,
) -> Result<Vec<String>, PortError> {
    let held = columns_of(connection, organization, table).await?;
    let held = held.iter();
    Ok(held
        .map(|held| entry_schema(organization, held.number))
        .collect())
}

/// Purges the columns in the trash of a table that goes for good.
pub(crate) async fn purge_columns(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: i64,
) -> Result<(), PortError> {
    for held in columns_of(connection, organization, table).await? {
        remove(connection, organization, &held).await?;
    }
    Ok(())
}

async fn purge(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: TrashId,
) -> Result<PurgedEntry, Fault> {
    let held = hold(connection, organization, id).await?;
    let entry = entries::get(connection, organization, id).await?;
    // A file has no table that `pg_dump` could be about to lock.
    if entry.kind != TrashKind::File {
        keep_from_dumps(connection).await?;
    }
    // Before the entry is removed, and the records of its masks with it.
    let masks = entries::masks(connection, organization, id).await?;
    remove(connection, organization, &held).await?;
    if let (TrashKind::Table, Some(table)) = (entry.kind, held.table_id) {
        purge_columns(connection, organization, table).await?;
        tables::purge_ledger(connection, held.number).await?;
        let table = TableIdentity::Organization(table);
        forget_table(connection, organization, &table, &entry.access).await?;
    }
    Ok(PurgedEntry {
        entry,
        objects: held
            .object_key
            .map(ObjectKey::new)
            .into_iter()
            .chain(masks)
            .collect(),
    })
}

async fn restore(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: TrashId,
    now: OffsetDateTime,
) -> Result<TrashEntry, RestoreError> {
    let entry = entries::get(connection, organization, id).await?;
    // Before the entry is locked, as drops of tables do.
    if entry.kind != TrashKind::File {
        lock_definitions(connection, organization).await?;
    }
    let held = hold(connection, organization, id).await?;
    match entry.kind {
        TrashKind::File => files::restore(connection, organization, &held, now).await?,
        TrashKind::Table => tables::restore(connection, organization, &held, now).await?,
        TrashKind::Column => columns::restore(connection, organization, &held, now).await?,
    }
    remove(connection, organization, &held).await?;
    Ok(entry)
}

/// Ends a transaction as its outcome demands. A refusal undoes what was done before it.
async fn conclude<T, E: From<DefineError>>(
    connection: &mut AsyncPgConnection,
    outcome: Result<T, E>,
) -> Result<T, E> {
    if outcome.is_err() {
        transaction::rollback(connection).await;
        return outcome;
    }
    match transaction::commit(connection).await {
        Ok(()) => outcome,
        Err(Fault::Database(error)) => Err(define_error(error).into()),
        Err(Fault::Port(error)) => Err(DefineError::from(error).into()),
    }
}

#[async_trait]
impl TrashStore for PgTrashStore {
    async fn delete_file(
        &self,
        organization: OrganizationId,
        id: FileId,
        deletion: &Deletion,
    ) -> Result<File, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => files::delete(connection, organization, id, deletion)
        )?)
    }

    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
        deletion: &Deletion,
    ) -> Result<(), DefineError> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        let outcome = tables::drop(&mut connection, organization, name, force, deletion).await;
        conclude(&mut connection, outcome).await
    }

    async fn drop_column(
        &self,
        organization: OrganizationId,
        table: &str,
        column: &str,
        force: bool,
        deletion: &Deletion,
    ) -> Result<(), DefineError> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        let name = columns::Named { table, column };
        let outcome = columns::drop(&mut connection, organization, name, force, deletion).await;
        conclude(&mut connection, outcome).await
    }

    async fn list(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<TrashEntry>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        entries::list(&mut connection, organization, page).await
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: TrashId,
    ) -> Result<TrashEntry, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        entries::get(&mut connection, organization, id).await
    }

    async fn tables(&self, organization: OrganizationId) -> Result<Vec<TrashedTable>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        entries::tables(&mut connection, organization).await
    }

    async fn restore(
        &self,
        organization: OrganizationId,
        id: TrashId,
        now: OffsetDateTime,
    ) -> Result<TrashEntry, RestoreError> {
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        let outcome = restore(&mut connection, organization, id, now).await;
        conclude(&mut connection, outcome).await
    }

    async fn purge(
        &self,
        organization: OrganizationId,
        id: TrashId,
    ) -> Result<PurgedEntry, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => purge(connection, organization, id)
        )?)
    }

    async fn due(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<(OrganizationId, TrashId)>, PortError> {
        let mut connection = self.database.connection().await?;
        entries::due(&mut connection, now, limit).await
    }

    async fn holds_object(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<bool, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        entries::holds_object(&mut connection, organization, object).await
    }

    async fn forget_row(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, PortError> {
        Ok(transacted!(
            self.database.of(organization),
            connection => forget::forget_row(connection, organization, table, key)
        )?)
    }
}
