//! Columns in the trash: their values by the keys of rows or chunks, in the schema of their entry.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Column, Table},
    ids::OrganizationId,
    refusal::Resource,
    trash::{Deletion, TrashKind, check_column, column_name, reference_targets},
};
use labdata_ports::{PortError, catalog::DefineError, trash::RestoreError};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{Dropped, HeldRow, begin_entry, entry_schema, measure, references};
use crate::{
    catalog::{
        change::{
            announce, drop_column, exists, holds_values, load, lock_definitions, run, uncover,
        },
        ddl,
        history::{default_in_history, drop_from_history, merge_arrays},
        load::stored_table,
        row_images::{drop_from_images, give_images_back, keep_images},
        save::id_of,
    },
    database::{
        errors::port_error,
        sql::{Schemas, ident, literal},
    },
    maintenance::backup::keep_from_dumps,
};

/// Name of a column.
pub(super) struct Named<'n> {
    pub(super) table: &'n str,
    pub(super) column: &'n str,
}

fn no_key(table: &Table) -> PortError {
    PortError::Internal(format!("table \"{}\" has no key", table.name))
}

pub(super) async fn drop(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    name: Named<'_>,
    force: bool,
    deletion: &Deletion,
) -> Result<(), DefineError> {
    lock_definitions(connection, organization).await?;
    let catalog = load(connection, organization).await?;
    let schemas = Schemas::of(organization);
    let table = catalog
        .table(name.table)
        .ok_or(PortError::NotFound(Resource::Table))?;
    let column = table
        .column_to_drop(name.column)?
        .ok_or(PortError::NotFound(Resource::Column))?;
    let holds_values = holds_values(connection, &schemas, table, column).await?;
    table.check_dropped_values(column, holds_values, force)?;
    keep_from_dumps(connection).await?;
    let entry = column_name(&table.name, &column.name);
    let dropped = Dropped {
        kind: TrashKind::Column,
        name: &entry,
        table: id_of(table)?,
        content: format!(
            // Changes of the table wait for the drop, so their numbers tell which of them came before it.
            "jsonb_build_object('columns', (SELECT jsonb_agg(to_jsonb(c)) FROM labdata.catalog_column c \
             WHERE c.table_id = t.id AND c.name = {}), 'last_change', coalesce(pg_sequence_last_value( \
             pg_get_serial_sequence('labdata.row_change', 'id')::regclass), 0)) || {}",
            literal(&column.name),
            references::content(&reference_targets(&catalog, [&**column])),
        ),
    };
    let (number, schema) = begin_entry(connection, organization, deletion, &dropped).await?;
    let values = format!("{schema}._values");
    let copy = ddl::copy_values(&schemas, table, column, &values).ok_or_else(|| no_key(table))?;
    // Values, history and images are copied before the column is dropped, and from then on only the copies have them.
    run(connection, &[copy]).await?;
    merge_arrays(connection, organization, table).await?;
    keep_history(connection, organization, table, column, &schema).await?;
    keep_images(connection, organization, table, column, &schema).await?;
    uncover(connection, organization, table).await?;
    drop_column(connection, &schemas, table, column).await?;
    drop_from_history(connection, organization, table, column).await?;
    drop_from_images(connection, organization, table, column).await?;
    measure(connection, number, &schema).await?;
    announce(connection, organization, &[&table.name], deletion.at).await?;
    Ok(())
}

/// Copies a column's values in recorded changes.
async fn keep_history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
) -> Result<(), PortError> {
    let name = literal(&column.sql_name());
    let copy = format!(
        "CREATE TABLE {schema}._history AS SELECT row_id, id, before::jsonb -> {name} AS value \
         FROM labdata.row_change WHERE organization_id = {}::uuid AND table_name = {} \
         AND before IS NOT NULL AND before::jsonb ? {name}",
        literal(&organization.to_string()),
        literal(&table.name),
    );
    connection.batch_execute(&copy).await.map_err(port_error)
}

pub(super) async fn restore(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
    now: OffsetDateTime,
) -> Result<(), RestoreError> {
    let catalog = load(connection, organization).await?;
    let column = defined(&held.content)?;
    let id = held.table_id.unwrap_or_default();
    let targets = references::targets(&held.content);
    let (table, column) = check_column(&catalog, id, &held.name, &column, &targets)?;
    references::follow(connection, held, [&column]).await?;
    keep_from_dumps(connection).await?;
    let schemas = Schemas::of(organization);
    let schema = entry_schema(organization, held.number);
    run(connection, &ddl::add_column_again(&schemas, table, &column)).await?;
    let last = last_change(connection, organization, held, table).await?;
    let values = ddl::return_values(&schemas, organization, table, &column, &schema, last);
    run(connection, &values.ok_or_else(|| no_key(table))?).await?;
    let missing = format!("{} IS NULL", ident(&column.sql_name()));
    let stored = ddl::stored_table(&schemas, table);
    // Rows of the meantime have no value where none could be given.
    let is_nullable = column.is_nullable || exists(connection, &stored, &missing).await?;
    add_definition(connection, held, is_nullable).await?;
    let after = load(connection, organization).await?;
    let after = after
        .table(&table.name)
        .ok_or(PortError::NotFound(Resource::Table))?;
    let column = after
        .column(&column.name)
        .ok_or(PortError::NotFound(Resource::Column))?;
    run(connection, &ddl::complete_column(&schemas, after, column)).await?;
    default_in_history(connection, organization, after, column).await?;
    give_history_back(connection, organization, after, column, &schema).await?;
    let completed = ddl::complete_changes(organization, after, column, &schema);
    run(connection, &[completed]).await?;
    give_images_back(connection, organization, after, column, &schema).await?;
    announce(connection, organization, &[&after.name], now).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct NumberRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// The number of the last recorded change before the drop.
async fn last_change(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
    table: &Table,
) -> Result<i64, PortError> {
    if let Some(number) = held.content.get("last_change").and_then(Value::as_i64) {
        return Ok(number);
    }
    // Earlier versions of the program did not store it.
    let found: NumberRow = diesel::sql_query(
        "SELECT coalesce(max(id), 0) AS number FROM labdata.row_change WHERE organization_id = $1 AND table_name = $2 \
         AND at <= (SELECT deleted_at FROM labdata.trash WHERE id = $3)",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<SqlUuid, _>(held.id)
    .get_result(connection)
    .await
    .map_err(port_error)?;
    Ok(found.number)
}

/// The column as its row in the trash defines it.
fn defined(content: &Value) -> Result<Column, RestoreError> {
    let table = json!({
        "id": 0, "name": "", "description": null, "semantic_category": "curated", "history": true,
        "columns": content["columns"], "unique_together": [],
    });
    let table = stored_table(table)?;
    let column = table.columns.iter().next().map(|column| (**column).clone());
    column.ok_or_else(|| PortError::Corrupt("labdata.trash.content: no column".to_owned()).into())
}

/// Adds the row that defines a column.
async fn add_definition(
    connection: &mut AsyncPgConnection,
    held: &HeldRow,
    is_nullable: bool,
) -> Result<(), PortError> {
    diesel::sql_query(
        "INSERT INTO labdata.catalog_column OVERRIDING SYSTEM VALUE \
         SELECT (jsonb_populate_record(NULL::labdata.catalog_column, \
             (content -> 'columns' -> 0) || jsonb_build_object('is_nullable', $2))).* \
         FROM labdata.trash WHERE id = $1",
    )
    .bind::<SqlUuid, _>(held.id)
    .bind::<Bool, _>(is_nullable)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

/// Adds a column's values to recorded changes again.
async fn give_history_back(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
    schema: &str,
) -> Result<(), PortError> {
    diesel::sql_query(format!(
        "UPDATE labdata.row_change it SET before = (it.before::jsonb || jsonb_build_object($3, h.value))::json \
         FROM {schema}._history h WHERE it.organization_id = $1 AND it.table_name = $2 \
         AND it.row_id = h.row_id AND it.id = h.id AND it.before IS NOT NULL"
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<Text, _>(&*column.sql_name())
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}
