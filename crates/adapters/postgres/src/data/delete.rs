//! Deletes rows, with the rows and points that reference them.

use std::collections::{BTreeMap, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Column, Table},
    data::write::{DeletedSeries, KEPT_ROWS, RowImage, RowKeys, StoredReference},
    scalar::{KeyValue, Values},
};

use super::{
    context::WriteContext,
    failure::Failure,
    row_images::{rendered_row, row_image},
};
use crate::database::sql::{
    bind_values, ident, key_from_text, key_values, primary_key, primary_key_type, sql_type,
    statement,
};

#[derive(QueryableByName)]
struct ReferenceRow {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Text)]
    target: String,
}

/// The first deleted rows of each table.
type RowImages = BTreeMap<String, Vec<RowImage>>;

#[derive(QueryableByName)]
struct DeletedImage {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Nullable<Text>)]
    stored: Option<String>,
}

#[derive(QueryableByName)]
struct DeletedRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    points: Option<i64>,
    #[diesel(sql_type = Array<BigInt>)]
    of_others: Vec<i64>,
}

/// Switches PostgreSQL's checks of references off for the following statements, if the role may.
/// They run one or two queries per deleted row and reference, ten times the cost of the delete
/// itself, and find nothing: the rows are locked against new references, and existing ones were
/// looked for after that (docs/adr/0007).
const CHECKS_OFF: &str = "SET CONSTRAINTS ALL DEFERRED; \
     DO $$ BEGIN SET LOCAL session_replication_role = replica; \
     EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";

/// Switches the checks on again and runs deferred ones.
const CHECKS_ON: &str = "DO $$ BEGIN SET LOCAL session_replication_role = origin; \
     EXCEPTION WHEN insufficient_privilege THEN NULL; END $$; \
     SET CONSTRAINTS ALL IMMEDIATE";

/// The references of stored rows to rows of a table, with the referencing rows locked.
pub(super) async fn stored_references(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &str,
    keys: &[KeyValue],
) -> Result<Vec<StoredReference>, Failure> {
    let mut references = Vec::new();
    if keys.is_empty() {
        return Ok(references);
    }
    for (other, column) in context
        .catalog
        .referencing(table)
        .filter(|(other, _)| !other.is_raw())
    {
        let targets = key_values(keys.iter().cloned(), column.data_type);
        let own_key = primary_key(other);
        let name = ident(&column.sql_name());
        let query = statement(format!(
            "SELECT t.{own_key}::text AS key, t.{name}::text AS target FROM {} t WHERE t.{name} = ANY($1::{}[]) ORDER BY t.{own_key} FOR UPDATE",
            context.schemas.table(&other.name),
            sql_type(column.data_type),
        ));
        let rows: Vec<ReferenceRow> = bind_values(query, &targets).load(connection).await?;
        let data_type = primary_key_type(other);
        references.extend(rows.into_iter().map(|row| StoredReference {
            table: other.name.clone(),
            key: key_from_text(row.key, data_type),
            target: key_from_text(row.target, column.data_type),
        }));
    }
    Ok(references)
}

/// Rows of a table, with all rows that reference them, directly or not, each once.
pub(super) async fn close_over_references(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &Table,
    keys: &[KeyValue],
) -> Result<RowKeys, Failure> {
    let mut rows = RowKeys::from([(table.name.clone(), keys.iter().cloned().collect())]);
    let mut open = vec![(table.name.clone(), keys.to_vec())];
    while let Some((table, keys)) = open.pop() {
        let mut new: BTreeMap<String, Vec<KeyValue>> = BTreeMap::new();
        for reference in stored_references(connection, context, &table, &keys).await? {
            let known = rows.entry(reference.table.clone()).or_default();
            if known.insert(reference.key.clone()) {
                new.entry(reference.table).or_default().push(reference.key);
            }
        }
        open.extend(new);
    }
    Ok(rows)
}

/// Deletes rows of several tables, which may reference each other in any way, and their series.
///
/// The caller MUST have locked the rows `FOR UPDATE` and then found that no other row references
/// them. Returns the series by raw table, and the first deleted rows by table.
pub(super) async fn delete_all(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    rows: &RowKeys,
) -> Result<(BTreeMap<String, DeletedSeries>, RowImages), Failure> {
    let keys: HashMap<&str, Values> = rows
        .iter()
        .filter_map(|(name, keys)| {
            let data_type = primary_key_type(context.catalog.table(name)?);
            Some((name.as_str(), key_values(keys.iter().cloned(), data_type)))
        })
        .collect();
    let series = delete_series(connection, context, &keys).await?;
    let mut stored = RowImages::new();
    connection.batch_execute(CHECKS_OFF).await?;
    for (name, keys) in &keys {
        let Some(table) = context.catalog.table(name) else {
            continue;
        };
        let query = statement(format!(
            "WITH deleted AS (DELETE FROM {} t USING unnest($1::{}[]) WITH ORDINALITY AS u(k, place) \
             WHERE t.{key} = u.k RETURNING t.{key}::text AS key, u.place, {} AS stored) \
             SELECT key, stored FROM deleted WHERE place <= {KEPT_ROWS}",
            context.schemas.table(name),
            sql_type(primary_key_type(table)),
            row_image(table, "t", "u.place"),
            key = primary_key(table),
        ));
        let rows: Vec<DeletedImage> = bind_values(query, keys).load(connection).await?;
        let rows = rows.into_iter().map(|row| RowImage {
            id: row.key,
            before: row.stored.and_then(|text| rendered_row(table, &text)),
            after: None,
        });
        stored.insert((*name).to_owned(), rows.collect());
    }
    connection.batch_execute(CHECKS_ON).await?;
    Ok((series, stored))
}

/// Deletes the points that reference the deleted rows.
async fn delete_series(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    keys: &HashMap<&str, Values>,
) -> Result<BTreeMap<String, DeletedSeries>, Failure> {
    let mut all = BTreeMap::new();
    for raw in context
        .catalog
        .tables()
        .iter()
        .filter(|table| table.is_raw())
    {
        let owners: Vec<(&Column, &Values)> = raw
            .references()
            .filter_map(|(_, column)| Some((column, keys.get(column.references.as_deref()?)?)))
            .collect();
        if owners.is_empty() {
            continue;
        }
        let mut names = Vec::with_capacity(owners.len());
        let mut conditions = Vec::with_capacity(owners.len());
        let mut counts = Vec::with_capacity(owners.len());
        for (index, (column, _)) in owners.iter().enumerate() {
            let name = ident(&column.sql_name());
            let condition = format!(
                "{name} = ANY(${}::{}[])",
                index + 2,
                sql_type(column.data_type)
            );
            counts.push(format!(
                "count(DISTINCT {name}) FILTER (WHERE _execution IS DISTINCT FROM $1 AND {condition})"
            ));
            conditions.push(condition);
            names.push(name);
        }
        let mut query = statement(format!(
            "WITH deleted AS (DELETE FROM {} WHERE {} RETURNING _points, _execution, {}) \
             SELECT sum(_points)::bigint AS points, ARRAY[{}] AS of_others FROM deleted",
            context.schemas.chunk_table(&raw.name),
            conditions.join(" OR "),
            names.join(", "),
            counts.join(", "),
        ))
        .bind::<SqlUuid, _>(context.execution.as_uuid());
        for (_, keys) in owners {
            query = bind_values(query, keys);
        }
        let deleted: DeletedRow = query.get_result(connection).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        all.insert(
            raw.name.clone(),
            DeletedSeries {
                points: deleted.points.map_or(0, count),
                of_others: deleted.of_others.into_iter().map(count).sum(),
            },
        );
    }
    Ok(all)
}
