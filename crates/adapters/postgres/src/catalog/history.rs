//! Recorded changes of rows follow the definitions of their table.

use diesel::sql_types::{Jsonb, Nullable, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Column, ColumnRename, Table},
    ids::OrganizationId,
};
use labdata_ports::{PortError, catalog::DefineError};
use serde_json::Value;

use crate::database::errors::port_error;

/// Changes the stored values of a table's rows: removes the former name, and adds the value under the name.
const REWRITE: &str = "UPDATE labdata.row_change SET before = ((before::jsonb - $3) || coalesce($4, '{}'))::json \
     WHERE organization_id = $1 AND table_name = $2 AND before IS NOT NULL";

/// Adds arrays of a raw table's chunks to their stored values, which a change of a column then rewrites. MUST come before it.
pub(crate) async fn merge_arrays(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
) -> Result<(), PortError> {
    if !table.is_raw() {
        return Ok(());
    }
    diesel::sql_query(
        "UPDATE labdata.row_change SET before = labdata.with_arrays(before, arrays), arrays = NULL \
         WHERE organization_id = $1 AND table_name = $2 AND arrays IS NOT NULL",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

/// Renames a column.
pub(super) async fn rename_in_history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    rename: &ColumnRename,
) -> Result<(), DefineError> {
    diesel::sql_query(
        "UPDATE labdata.row_change SET before = \
         ((before::jsonb - $3) || jsonb_build_object($4, before::jsonb -> $3))::json \
         WHERE organization_id = $1 AND table_name = $2 AND before IS NOT NULL",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<Text, _>(&*rename.before.sql_name())
    .bind::<Text, _>(&*rename.after.sql_name())
    .execute(connection)
    .await
    .map_err(port_error)?;
    Ok(())
}

/// Removes a column.
pub(crate) async fn drop_from_history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
) -> Result<(), DefineError> {
    rewrite(connection, organization, table, &column.sql_name(), None).await
}

/// Gives the rows the default of a new column, as the stored rows get it.
pub(crate) async fn default_in_history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    column: &Column,
) -> Result<(), DefineError> {
    let Some(default) = column.default_value().filter(|_| !table.is_raw()) else {
        return Ok(());
    };
    let name = column.sql_name();
    let added = Value::from_iter([(name.to_string(), default.to_json())]);
    rewrite(connection, organization, table, &name, Some(added)).await
}

async fn rewrite(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    removed: &str,
    added: Option<Value>,
) -> Result<(), DefineError> {
    diesel::sql_query(REWRITE)
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(&table.name)
        .bind::<Text, _>(removed)
        .bind::<Nullable<Jsonb>, _>(added)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}

/// Deletes all recorded changes of a table, and the numbers of their versions.
pub(super) async fn forget_history(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &str,
) -> Result<(), PortError> {
    for statement in [
        "DELETE FROM labdata.row_change WHERE organization_id = $1 AND table_name = $2",
        "DELETE FROM labdata.deleted_version WHERE organization_id = $1 AND table_name = $2",
    ] {
        diesel::sql_query(statement)
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<Text, _>(table)
            .execute(connection)
            .await
            .map_err(port_error)?;
    }
    Ok(())
}
