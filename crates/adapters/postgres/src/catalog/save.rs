//! Stores an organization's definitions.

use diesel::sql_types::{Array, BigInt, Bool, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Column, ColumnRename, Table, TableAccess},
    conflict::Conflict,
    ids::OrganizationId,
};
use labdata_ports::{PortError, catalog::DefineError};

use crate::{
    database::errors::{Fault, port_error},
    outward::webhooks::outbox,
};

/// Adds a column, or changes it as far as columns change.
pub(super) async fn save_column(
    connection: &mut AsyncPgConnection,
    table: i64,
    position: usize,
    column: &Column,
) -> Result<(), DefineError> {
    diesel::sql_query(
        // Keys and references of a column never change, so the update leaves them out.
        "INSERT INTO labdata.catalog_column (table_id, position, name, description, data_type, is_primary_key, \
         is_nullable, is_unique, default_value, references_table, label, unit) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (table_id, name) DO UPDATE SET position = excluded.position, description = excluded.description, \
         data_type = excluded.data_type, label = excluded.label, unit = excluded.unit, \
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
    .bind::<Nullable<Text>, _>(&column.label)
    .bind::<Nullable<Text>, _>(&column.unit)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

/// Replaces a table's sets of columns that are unique together.
pub(super) async fn save_unique_together(
    connection: &mut AsyncPgConnection,
    id: i64,
    table: &Table,
) -> Result<(), DefineError> {
    // Replaced as a whole: the sets have no identity to compare, and are few.
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

/// Replaces the groups that may read and write a table.
pub(super) async fn save_access(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    id: i64,
    access: &TableAccess,
) -> Result<(), DefineError> {
    diesel::sql_query("DELETE FROM labdata.table_access WHERE table_id = $1")
        .bind::<BigInt, _>(id)
        .execute(connection)
        .await
        .map_err(port_error)?;
    for (may, groups) in [("read", &access.read), ("write", &access.write)] {
        if groups.is_empty() {
            continue;
        }
        let saved = diesel::sql_query(
            "INSERT INTO labdata.table_access (table_id, may, group_id) \
             SELECT $1, $2, id FROM labdata.user_group WHERE organization_id = $3 AND name = ANY ($4)",
        )
        .bind::<BigInt, _>(id)
        .bind::<Text, _>(may)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Array<Text>, _>(groups)
        .execute(connection)
        .await
        .map_err(|error| {
            // A group that is being deleted is found, and waited for, and gone then.
            let fault = Fault::from(error).on_violation("table_access_group_id_fkey", || {
                PortError::Conflict(Conflict::TablesChanged)
            });
            PortError::from(fault)
        })?;
        // A group that was removed in the meantime must not leave the table open.
        if saved != groups.len() {
            return Err(PortError::Conflict(Conflict::TablesChanged).into());
        }
    }
    Ok(())
}

/// The table's id.
pub(crate) fn id_of(table: &Table) -> Result<i64, PortError> {
    let missing = || PortError::Internal(format!("table \"{}\" has no id", table.name));
    table.id.ok_or_else(missing)
}

/// Renames a table, wherever it is named but in events, which tell what happened.
pub(super) async fn rename_table(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    from: &str,
    to: &str,
) -> Result<(), DefineError> {
    // The filters of webhooks change below: earlier events are received by the old name.
    outbox::make_all(connection, organization)
        .await
        .map_err(PortError::from)?;
    let statements = [
        "UPDATE labdata.catalog_table SET name = $3 WHERE organization_id = $1 AND name = $2",
        "UPDATE labdata.catalog_column SET references_table = $3 WHERE references_table = $2 AND table_id IN \
         (SELECT id FROM labdata.catalog_table WHERE organization_id = $1)",
        "UPDATE labdata.row_change SET table_name = $3 WHERE organization_id = $1 AND table_name = $2",
        "UPDATE labdata.deleted_version SET table_name = $3 WHERE organization_id = $1 AND table_name = $2",
        // Columns in the trash go by the name of their table.
        "UPDATE labdata.trash SET name = $3 || substr(name, length($2) + 1) \
         WHERE organization_id = $1 AND kind = 'column' AND starts_with(name, $2 || '.') \
         AND table_id = (SELECT id FROM labdata.catalog_table WHERE organization_id = $1 AND name = $3)",
        // What is there references tables by identity, but what an earlier version of the program dropped: by name.
        "UPDATE labdata.trash SET content = jsonb_set(content, '{columns}', (SELECT jsonb_agg( \
             CASE WHEN c ->> 'references_table' = $2 THEN jsonb_set(c, '{references_table}', to_jsonb($3)) ELSE c END \
             ORDER BY n) FROM jsonb_array_elements(content -> 'columns') WITH ORDINALITY AS e (c, n))) \
         WHERE organization_id = $1 AND NOT content ? 'targets' AND content -> 'columns' @> \
             jsonb_build_array(jsonb_build_object('references_table', $2)) AND (kind <> 'table' OR name <> $2)",
        // A table in the trash has its own entries, whichever bears its name by now.
        "UPDATE labdata.write_ledger SET table_name = $3 \
         WHERE organization_id = $1 AND table_name = $2 AND trash_number IS NULL",
        "UPDATE labdata.event_log SET table_name = $3 \
         WHERE organization_id = $1 AND table_name = $2 AND trash_number IS NULL",
        "UPDATE labdata.webhook SET table_name = $3 WHERE organization_id = $1 AND table_name = $2",
    ];
    for statement in statements {
        diesel::sql_query(statement)
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<Text, _>(from)
            .bind::<Text, _>(to)
            .execute(connection)
            .await
            .map_err(port_error)?;
    }
    Ok(())
}

/// Renames a column.
pub(super) async fn rename_column(
    connection: &mut AsyncPgConnection,
    table: i64,
    rename: &ColumnRename,
) -> Result<(), DefineError> {
    diesel::sql_query(
        // Before the columns are saved: `save_column` finds them by
        // name, and would add this one again.
        "UPDATE labdata.catalog_column SET name = $3 WHERE table_id = $1 AND name = $2",
    )
    .bind::<BigInt, _>(table)
    .bind::<Text, _>(&rename.before.name)
    .bind::<Text, _>(&rename.after.name)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

/// Deletes a column.
pub(super) async fn delete_column(
    connection: &mut AsyncPgConnection,
    table: i64,
    name: &str,
) -> Result<(), DefineError> {
    diesel::sql_query("DELETE FROM labdata.catalog_column WHERE table_id = $1 AND name = $2")
        .bind::<BigInt, _>(table)
        .bind::<Text, _>(name)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}
