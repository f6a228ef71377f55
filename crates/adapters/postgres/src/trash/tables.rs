//! Tables in the trash: moved into the schema of their entry.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Table, TableAccess},
    ids::OrganizationId,
    refusal::Resource,
    trash::{Deletion, TrashKind, check_table, deleted_group_name, reference_targets},
};
use labdata_ports::{PortError, catalog::DefineError, trash::RestoreError};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Dropped, HeldRow, begin_entry, entry_schema, measure, references};
use crate::{
    catalog::{
        change::{announce, is_empty, load, lock_definitions, run, uncover, undefine},
        ddl,
        load::stored_table,
        save::id_of,
    },
    database::{
        errors::port_error,
        sql::{Schemas, literal},
    },
    maintenance::backup::keep_from_dumps,
};

/// The rows that define a table.
const CONTENT: &str = "jsonb_build_object('table', to_jsonb(t), \
    'columns', (SELECT coalesce(jsonb_agg(to_jsonb(c) ORDER BY c.position, c.id), '[]') \
        FROM labdata.catalog_column c WHERE c.table_id = t.id), \
    'unique', (SELECT coalesce(jsonb_agg(to_jsonb(u) ORDER BY u.position), '[]') \
        FROM labdata.catalog_unique u WHERE u.table_id = t.id), \
    'access', (SELECT coalesce(jsonb_agg(to_jsonb(a)), '[]') FROM labdata.table_access a WHERE a.table_id = t.id))";

pub(super) async fn drop(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    name: &str,
    force: bool,
    deletion: &Deletion,
) -> Result<(), DefineError> {
    lock_definitions(connection, organization).await?;
    let catalog = load(connection, organization).await?;
    let schemas = Schemas::of(organization);
    let table = catalog
        .table(name)
        .ok_or(PortError::NotFound(Resource::Table))?;
    // Writes hold the lock in shared mode, so no row arrives after this look.
    let is_empty = is_empty(connection, &schemas, table).await?;
    catalog.check_drop(table, is_empty, force)?;
    keep_from_dumps(connection).await?;
    let targets = reference_targets(&catalog, table.columns.iter().map(|it| &**it));
    let dropped = Dropped {
        kind: TrashKind::Table,
        name,
        table: id_of(table)?,
        content: format!("{CONTENT} || {}", references::content(&targets)),
    };
    let (number, schema) = begin_entry(connection, organization, deletion, &dropped).await?;
    uncover(connection, organization, table).await?;
    run(connection, &ddl::move_away(&schemas, table, &schema)).await?;
    keep_history(connection, organization, name, &schema).await?;
    undefine(connection, organization, table).await?;
    measure(connection, number, &schema).await?;
    announce(connection, organization, &[name], deletion.at).await?;
    mark_records(connection, organization, name, number).await?;
    Ok(())
}

/// The number of an entry for tables that were dropped without one.
pub(crate) const PURGED: i64 = 0;

/// Records that name their tables, and stay when a table is dropped.
const RECORDS: [&str; 2] = ["write_ledger", "event_log"];

/// Copies of a table's history, and what they are made of.
const COPIES: [(&str, &str); 2] = [("_history", "row_change"), ("_versions", "deleted_version")];

/// Copies the recorded changes of a table, which [`undefine`] deletes.
async fn keep_history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
    schema: &str,
) -> Result<(), PortError> {
    for (copy, original) in COPIES {
        let copy = format!(
            "CREATE TABLE {schema}.{copy} AS SELECT * FROM labdata.{original} \
             WHERE organization_id = {}::uuid AND table_name = {}",
            literal(&organization.to_string()),
            literal(table),
        );
        connection.batch_execute(&copy).await.map_err(port_error)?;
    }
    Ok(())
}

/// Marks what the ledger and the event log have of a table: another one, which others may see, may bear its name by the
/// time that it is restored.
pub(crate) async fn mark_records(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
    number: i64,
) -> Result<(), PortError> {
    let change = "SET trash_number = $3 \
         WHERE organization_id = $1 AND table_name = $2 AND trash_number IS NULL";
    change_records(connection, change, organization, table, number).await
}

/// Undoes [`mark_records`].
async fn unmark_records(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
    number: i64,
) -> Result<(), PortError> {
    let change =
        "SET trash_number = NULL, table_name = $2 WHERE organization_id = $1 AND trash_number = $3";
    change_records(connection, change, organization, table, number).await
}

async fn change_records(
    connection: &mut AsyncPgConnection,
    change: &str,
    organization: OrganizationId,
    table: &str,
    number: i64,
) -> Result<(), PortError> {
    for records in RECORDS {
        diesel::sql_query(format!("UPDATE labdata.{records} {change}"))
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<Text, _>(table)
            .bind::<BigInt, _>(number)
            .execute(connection)
            .await
            .map_err(port_error)?;
    }
    Ok(())
}

/// Deletes the values that the ledger has of a table that is purged. Its entries stay, as that of one which was dropped.
pub(super) async fn purge_ledger(
    connection: &mut AsyncPgConnection,
    number: i64,
) -> Result<(), PortError> {
    diesel::sql_query(
        "UPDATE labdata.write_ledger SET row_images = NULL WHERE trash_number = $1 AND row_images IS NOT NULL",
    )
    .bind::<BigInt, _>(number)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

pub(super) async fn restore(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
    now: OffsetDateTime,
) -> Result<(), RestoreError> {
    let catalog = load(connection, organization).await?;
    let targets = references::targets(&held.content);
    let table = check_table(&catalog, &defined(&held.content)?, &targets)?;
    references::follow(connection, held, table.columns.iter().map(|it| &**it)).await?;
    keep_from_dumps(connection).await?;
    let schemas = Schemas::of(organization);
    let schema = entry_schema(organization, held.number);
    run(connection, &ddl::move_back(&schemas, &table, &schema)).await?;
    for rows in [
        // With their ids, which others may know.
        "INSERT INTO labdata.catalog_table OVERRIDING SYSTEM VALUE \
         SELECT (jsonb_populate_record(NULL::labdata.catalog_table, content -> 'table')).* \
         FROM labdata.trash WHERE id = $1",
        "INSERT INTO labdata.catalog_column OVERRIDING SYSTEM VALUE \
         SELECT it.* FROM labdata.trash t, \
             jsonb_populate_recordset(NULL::labdata.catalog_column, t.content -> 'columns') it WHERE t.id = $1",
        "INSERT INTO labdata.catalog_unique SELECT it.* FROM labdata.trash t, \
             jsonb_populate_recordset(NULL::labdata.catalog_unique, t.content -> 'unique') it WHERE t.id = $1",
    ] {
        diesel::sql_query(rows)
            .bind::<SqlUuid, _>(held.id)
            .execute(connection)
            .await
            .map_err(port_error)?;
    }
    restore_access(connection, organization, held, now).await?;
    give_history_back(connection, &schema).await?;
    unmark_records(connection, organization, &table.name, held.number).await?;
    announce(connection, organization, &[&table.name], now).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct AccessRow {
    #[diesel(sql_type = Text)]
    may: String,
    #[diesel(sql_type = SqlUuid)]
    group_id: Uuid,
    #[diesel(sql_type = Bool)]
    exists: bool,
}

/// Gives a table its access again, as far as its groups exist ([`TableAccess::retained`]).
async fn restore_access(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
    now: OffsetDateTime,
) -> Result<(), PortError> {
    let rows: Vec<AccessRow> = diesel::sql_query(
        // Locked, so that no group is deleted until the table names it.
        "SELECT a.may, a.group_id, g.id IS NOT NULL AS exists FROM labdata.trash t \
         CROSS JOIN LATERAL jsonb_populate_recordset(NULL::labdata.table_access, coalesce(t.content -> 'access', '[]')) a \
         LEFT JOIN LATERAL (SELECT id FROM labdata.user_group WHERE id = a.group_id FOR KEY SHARE) g ON true \
         WHERE t.id = $1 ORDER BY a.group_id",
    )
    .bind::<SqlUuid, _>(held.id)
    .load(connection)
    .await
    .map_err(port_error)?;
    let named = |may: &str| {
        let rows = rows.iter().filter(|row| row.may == may);
        rows.map(|row| row.group_id.to_string()).collect()
    };
    let access = TableAccess {
        read: named("read"),
        write: named("write"),
    };
    let existing = rows.iter().filter(|row| row.exists);
    let existing: BTreeSet<String> = existing.map(|row| row.group_id.to_string()).collect();
    let access = access.retained(|group| existing.contains(group));
    for (may, groups) in [("read", &access.read), ("write", &access.write)] {
        for group in groups {
            grant(connection, organization, held, may, group, now).await?;
        }
    }
    Ok(())
}

/// Gives a group access to a table; a deleted group is created again, without members.
async fn grant(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    held: &HeldRow,
    may: &str,
    group: &str,
    now: OffsetDateTime,
) -> Result<(), PortError> {
    diesel::sql_query(
        "INSERT INTO labdata.user_group (id, organization_id, name, created_at) \
                 VALUES ($1::uuid, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
    )
    .bind::<Text, _>(group)
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(deleted_group_name(group))
    .bind::<Timestamptz, _>(now)
    .execute(connection)
    .await
    .map_err(port_error)?;
    diesel::sql_query(
        "INSERT INTO labdata.table_access (table_id, may, group_id) VALUES ($1, $2, $3::uuid)",
    )
    .bind::<Nullable<BigInt>, _>(held.table_id)
    .bind::<Text, _>(may)
    .bind::<Text, _>(group)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

/// The table as its rows in the trash define it.
pub(super) fn defined(content: &Value) -> Result<Table, PortError> {
    let mut definition = content["table"].clone();
    let groups = content["unique"].as_array().into_iter().flatten();
    let groups: Vec<&Value> = groups.map(|group| &group["columns"]).collect();
    if let Some(definition) = definition.as_object_mut() {
        definition.insert("columns".to_owned(), content["columns"].clone());
        definition.insert("unique_together".to_owned(), json!(groups));
    }
    stored_table(definition)
}

/// Adds the recorded changes of a restored table again, under their ids.
async fn give_history_back(
    connection: &mut AsyncPgConnection,
    schema: &str,
) -> Result<(), PortError> {
    for (copy, original) in COPIES {
        let copy = format!("{schema}.{copy}");
        let insert = format!(
            // By the columns of then: a newer version of the program may have added others.
            "DO $history$ DECLARE names text; BEGIN \
             SELECT string_agg(quote_ident(attname), ', ') INTO names FROM pg_catalog.pg_attribute \
                 WHERE attrelid = {relation}::regclass AND attnum > 0 AND NOT attisdropped; \
             EXECUTE format('INSERT INTO labdata.{original} (%1$s) OVERRIDING SYSTEM VALUE \
                 SELECT %1$s FROM {copy}', names); END $history$",
            relation = literal(&copy),
        );
        connection
            .batch_execute(&insert)
            .await
            .map_err(port_error)?;
    }
    Ok(())
}
