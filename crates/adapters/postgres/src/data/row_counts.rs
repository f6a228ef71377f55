//! Estimates of tables' rows and points, at a cost that does not grow with them.

use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Catalog, Table},
    ids::OrganizationId,
};

use labdata_ports::PortError;

use super::matching::unknown_row;
use crate::database::{
    errors::table_error,
    sql::{Schemas, chunk_schema_name, literal, schema_name, statement},
};

/// Maximum size of a table that is counted exactly, in pages of 8 KiB.
const PAGES_TO_COUNT: i64 = 64;

/// Number of pages of a larger raw table that are sampled: fewer, so that no table takes longer than one that is counted.
const PAGES_TO_SAMPLE: i64 = 32;

#[derive(QueryableByName)]
struct SizeRow {
    #[diesel(sql_type = Text)]
    schema: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    pages: i64,
    /// PostgreSQL's estimate.
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

/// Counts the rows of each table of the catalog.
///
/// # Errors
/// [`Conflict::TablesChanged`](labdata_domain::conflict::Conflict::TablesChanged) if a table is dropped
/// between the statements; then it is not asked for again.
pub(super) async fn row_counts(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    catalog: &Catalog,
) -> Result<Vec<u64>, PortError> {
    let (rows_in, chunks_in) = (schema_name(organization), chunk_schema_name(organization));
    // Statistics are empty after a crash, and `reltuples` is -1 before the first ANALYZE.
    let sizes = format!(
        "SELECT n.nspname::text AS schema, c.relname::text AS name, \
         coalesce(pg_relation_size(c.oid), 0) / current_setting('block_size')::bigint AS pages, \
         greatest(pg_stat_get_live_tuples(c.oid), c.reltuples::bigint, 0) AS rows \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname IN ({}, {}) AND c.relkind = 'r'",
        literal(&rows_in),
        literal(&chunks_in),
    );
    let sizes: Vec<SizeRow> = statement(sizes)
        .load(connection)
        .await
        .map_err(table_error)?;
    let sizes: HashMap<(&str, &str), &SizeRow> = sizes
        .iter()
        .map(|size| ((size.schema.as_str(), size.name.as_str()), size))
        .collect();
    let schemas = Schemas::of(organization);
    let mut counts = Vec::with_capacity(catalog.tables().len());
    let mut counting = Vec::new();
    for (place, table) in catalog.tables().iter().enumerate() {
        let schema = if table.is_raw() { &chunks_in } else { &rows_in };
        // A table dropped since the catalog was read counts as empty.
        let name = table.sql_name();
        let size = sizes.get(&(schema.as_str(), name.as_ref()));
        let estimate = size.map_or(0, |size| size.rows);
        counts.push(u64::try_from(estimate).unwrap_or_default());
        counting.extend(size.and_then(|size| count(&schemas, table, place, size.pages)));
    }
    if !counting.is_empty() {
        let text = counting.join(" UNION ALL ");
        let counted: Vec<CountRow> = statement(text)
            .load(connection)
            .await
            .map_err(table_error)?;
        for found in counted {
            let place = usize::try_from(found.place).ok();
            let count = place.and_then(|place| counts.get_mut(place));
            *count.ok_or_else(unknown_row)? = u64::try_from(found.rows).unwrap_or_default();
        }
    }
    Ok(counts)
}

/// The statement that counts a table; `None` if its estimate is used.
fn count(schemas: &Schemas, table: &Table, place: usize, pages: i64) -> Option<String> {
    if !table.is_raw() {
        let from = schemas.table(&table.name);
        let counted = format!("SELECT {place}::bigint AS place, count(*) AS rows FROM {from}");
        return (pages <= PAGES_TO_COUNT).then_some(counted);
    }
    let from = schemas.chunk_table(&table.name);
    let (sample, times) = if pages <= PAGES_TO_COUNT {
        (String::new(), String::new())
    } else {
        (
            // SYSTEM reads whole pages: the cost of a sample does not grow with the table.
            format!(" TABLESAMPLE SYSTEM (100.0 * {PAGES_TO_SAMPLE} / {pages})"),
            format!(" * {pages} / {PAGES_TO_SAMPLE}"),
        )
    };
    Some(format!(
        "SELECT {place}::bigint AS place, (coalesce(sum(_points), 0){times})::bigint AS rows \
         FROM {from}{sample}"
    ))
}
