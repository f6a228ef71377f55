//! Forgets what the trash holds of a row.

use diesel::{
    QueryableByName,
    sql_types::{Array, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{ColumnRef, KeyedTable, Table},
    ids::OrganizationId,
    scalar::KeyValue,
    trash::is_reference_to,
};
use labdata_ports::{PortError, catalog::DefineError};

use super::{HeldRow, columns_of, entry_schema, references, tables::defined};
use crate::{
    catalog::{
        change::{load, lock_definitions},
        ddl::stored_table,
        row_images::images_of_entry,
    },
    data::history::is_series_of,
    database::{
        errors::{Fault, port_error},
        names::column_name,
        sql::Schemas,
    },
};

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = Text)]
    id: String,
}

pub(super) async fn forget_row(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &KeyedTable,
    key: &KeyValue,
) -> Result<bool, Fault> {
    lock_definitions(connection, organization).await?;
    let catalog = load(connection, organization).await;
    let catalog = catalog.map_err(|error| match error {
        DefineError::Port(error) => error,
        DefineError::Refused(refusal) => PortError::Internal(refusal.to_string()),
    })?;
    let mut found = false;
    // Core tables have no id, and no column of theirs is dropped.
    if let Some(id) = table.id {
        found |= forget_in_columns(connection, organization, id, &[key.to_string()]).await?;
    }
    for (raw, reference) in catalog.referencing(&table.name) {
        if let (true, Some(id)) = (raw.is_raw(), raw.id) {
            let chunks = chunks_of(connection, organization, raw, reference, key).await?;
            found |= forget_in_columns(connection, organization, id, &chunks).await?;
        }
    }
    for held in raw_tables(connection, organization).await? {
        let schema = entry_schema(organization, held.number);
        let raw = defined(&held.content)?;
        let targets = references::targets(&held.content);
        let references = raw.references();
        for (reference, _) in references.filter(|(it, _)| is_reference_to(it, &targets, table)) {
            let forget = format!(
                "DELETE FROM {schema}._history c WHERE {}",
                is_series_of(reference, "$1")
            );
            let forgotten = diesel::sql_query(forget).bind::<Text, _>(key.to_string());
            found |= forgotten.execute(connection).await? > 0;
        }
    }
    Ok(found)
}

/// Forgets what columns in the trash held of rows or chunks of a table.
async fn forget_in_columns(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: i64,
    ids: &[String],
) -> Result<bool, Fault> {
    let mut forgotten = 0;
    for held in columns_of(connection, organization, table).await? {
        let schema = entry_schema(organization, held.number);
        // Entries of earlier versions of the program lack the table of images.
        diesel::sql_query(images_of_entry(&schema))
            .execute(connection)
            .await?;
        for forget in [
            // Emptied, not deleted: that a row was there distinguishes it from one that is added later.
            format!("UPDATE {schema}._values SET _value = NULL WHERE _key::text = ANY ($1)"),
            format!("DELETE FROM {schema}._history WHERE row_id = ANY ($1)"),
            format!("DELETE FROM {schema}._images WHERE row_id = ANY ($1)"),
        ] {
            forgotten += diesel::sql_query(forget)
                .bind::<Array<Text>, _>(ids)
                .execute(connection)
                .await?;
        }
    }
    Ok(forgotten > 0)
}

/// Keys of the chunks, former ones too, that a row owns by a reference.
async fn chunks_of(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    raw: &Table,
    reference: &ColumnRef,
    key: &KeyValue,
) -> Result<Vec<String>, Fault> {
    let chunks: Vec<IdRow> = diesel::sql_query(format!(
        "SELECT t._chunk::text AS id FROM {stored} t WHERE t.{column}::text = $3 \
         UNION SELECT c.row_id FROM labdata.row_change c WHERE c.organization_id = $1 AND c.table_name = $2 AND {is_former}",
        stored = stored_table(&Schemas::of(organization), raw),
        column = column_name(reference),
        is_former = is_series_of(reference, "$3"),
    ))
    .bind::<SqlUuid, _>(organization.as_uuid())
    .bind::<Text, _>(&raw.name)
    .bind::<Text, _>(key.to_string())
    .load(connection)
    .await?;
    Ok(chunks.into_iter().map(|row| row.id).collect())
}

/// Locks the raw tables in the trash.
async fn raw_tables(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<Vec<HeldRow>, PortError> {
    diesel::sql_query(
        "SELECT id, number, kind, name, table_id, object_key, content FROM labdata.trash \
         WHERE organization_id = $1 AND kind = 'table' AND content -> 'table' ->> 'semantic_category' = 'raw' \
         ORDER BY number FOR UPDATE",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .load(connection)
    .await
    .map_err(port_error)
}
