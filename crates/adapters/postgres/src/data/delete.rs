//! Deletes rows, with the rows and points that reference them.

use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Column, KeyedTable, Table},
    data::{
        history::ChangeAction,
        write::{DeletedSeries, KEPT_ROWS, RowImage, RowKeys, StoredReference},
    },
    scalar::{KeyValue, Values},
};
use time::OffsetDateTime;

use super::{
    context::WriteContext,
    failure::Failure,
    row_images::{rendered_row, row_image},
};
use crate::database::{
    names::{TableNames, column_name},
    sql::{bind_values, key_from_text, key_values, sql_type, statement},
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
    for (other, column) in context.catalog.row_references(table) {
        let targets = key_values(keys.iter().cloned(), column.data_type);
        let names = context.names(&other);
        // Locked in the order of keys, as every other writer does. The lock protects the reference
        // from changing until the delete is decided.
        let query = statement(format!(
            "SELECT t.{key}::text AS key, t.{reference}::text AS target FROM {table} t \
             WHERE t.{reference} = ANY($1::{data_type}[]) ORDER BY t.{key} FOR UPDATE",
            key = names.key,
            reference = column_name(column),
            table = names.name,
            data_type = sql_type(column.data_type),
        ));
        let rows: Vec<ReferenceRow> = bind_values(query, &targets).load(connection).await?;
        references.extend(rows.into_iter().map(|row| StoredReference {
            table: other.clone(),
            key: names.read_key(row.key),
            target: key_from_text(row.target, column.data_type),
        }));
    }
    Ok(references)
}

/// Rows of a table, with all rows that reference them, directly or not, each once.
pub(super) async fn close_over_references(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &KeyedTable,
    keys: &[KeyValue],
) -> Result<RowKeys, Failure> {
    let mut rows = RowKeys::from([(table.clone(), keys.iter().cloned().collect())]);
    let mut open = vec![(table.clone(), keys.to_vec())];
    // References may form circles, so only rows that were not found before are followed.
    while let Some((table, keys)) = open.pop() {
        let mut new: BTreeMap<KeyedTable, Vec<KeyValue>> = BTreeMap::new();
        for reference in stored_references(connection, context, &table.name, &keys).await? {
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
    context: &mut WriteContext<'_>,
    rows: &RowKeys,
) -> Result<(BTreeMap<String, DeletedSeries>, RowImages), Failure> {
    let deleted: Vec<(TableNames<'_>, Values)> = rows
        .iter()
        .map(|(table, keys)| {
            let names = context.names(table);
            let keys = names.key_values(keys);
            (names, keys)
        })
        .collect();
    let latest = latest_moment(connection, context, &deleted).await?;
    context.later_than(latest)?;
    // Series first: with the checks off, PostgreSQL would not cascade to their chunks.
    let series = delete_series(connection, context, &deleted).await?;
    let mut stored = RowImages::new();
    connection.batch_execute(CHECKS_OFF).await?;
    for (names, keys) in &deleted {
        let images = delete_rows(connection, context, names, keys).await?;
        stored.insert(names.table.name.clone(), images);
    }
    // A failure before this line needs no reset: SET LOCAL ends with the rollback.
    connection.batch_execute(CHECKS_ON).await?;
    Ok((series, stored))
}

/// Deletes the rows of these keys; returns the first of them.
async fn delete_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    names: &TableNames<'_>,
    keys: &Values,
) -> Result<Vec<RowImage>, Failure> {
    let recording = context.recording(names.table);
    // The keys are numbered, so that PostgreSQL renders only the rows that are stored.
    let query = statement(format!(
        "WITH deleted AS (DELETE FROM {table} t USING unnest($1::{key_type}[]) WITH ORDINALITY AS u(k, place) \
         WHERE t.{key} = u.k RETURNING t.{key}::text AS key, u.place, {image} AS stored, {before}, \
         greatest($2, t.updated_at + interval '1 microsecond') AS at){recorded} \
         SELECT key, stored FROM deleted WHERE place <= {KEPT_ROWS}",
        table = names.name,
        key_type = names.key_type,
        key = names.key,
        image = row_image(names.table, "t", "u.place"),
        before = recording.row("t"),
        recorded = recording.part(ChangeAction::Deleted, "deleted", 2),
    ));
    let query = bind_values(query, keys).bind::<Timestamptz, _>(context.now);
    let rows: Vec<DeletedImage> = recording.bind(query).load(connection).await?;
    let images = rows.into_iter().map(|row| RowImage {
        id: row.key,
        before: row.stored.and_then(|text| rendered_row(names.table, &text)),
        after: None,
    });
    Ok(images.collect())
}

#[derive(QueryableByName)]
struct LatestRow {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    latest: Option<OffsetDateTime>,
}

/// The moment of the last change of these rows and of their series.
async fn latest_moment(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    rows: &[(TableNames<'_>, Values)],
) -> Result<Option<OffsetDateTime>, Failure> {
    let mut latest = None;
    for (names, keys) in rows {
        let parts = series_of(context, &names.table.name).map(|(raw, column)| {
            format!(
                " UNION ALL SELECT max(c._written_at) FROM {} c WHERE c.{} = ANY($1::{}[])",
                context.schemas.chunk_table(&raw.name),
                column_name(column),
                sql_type(column.data_type),
            )
        });
        let query = statement(format!(
            "SELECT max(m.at) AS latest FROM (SELECT max(t.updated_at) AS at FROM {} t WHERE t.{} = ANY($1::{}[]){}) m",
            names.name,
            names.key,
            names.key_type,
            parts.collect::<String>(),
        ));
        let row: LatestRow = bind_values(query, keys).get_result(connection).await?;
        latest = latest.max(row.latest);
    }
    Ok(latest)
}

/// The raw tables whose series rows of a table own, each with its reference.
fn series_of<'a>(
    context: &'a WriteContext<'_>,
    table: &'a str,
) -> impl Iterator<Item = (&'a Table, &'a Column)> {
    let referencing = context.catalog.referencing(table);
    let referencing = referencing.filter(|(raw, _)| raw.is_raw());
    referencing.map(|(raw, column)| (&**raw, &**column))
}

/// Deletes the points that reference the deleted rows.
async fn delete_series(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    deleted: &[(TableNames<'_>, Values)],
) -> Result<BTreeMap<String, DeletedSeries>, Failure> {
    let mut all = BTreeMap::new();
    let tables = context.catalog.tables().iter();
    for raw in tables.filter(|table| table.is_raw()) {
        let owners: Vec<(&Column, &Values)> = raw
            .references()
            .flat_map(|(column, target)| {
                let targets = deleted.iter();
                let targets = targets.filter(move |(names, _)| names.table.name == target);
                targets.map(move |(_, keys)| (&**column, keys))
            })
            .collect();
        if !owners.is_empty() {
            let series = delete_chunks(connection, context, raw, &owners).await?;
            all.insert(raw.name.clone(), series);
        }
    }
    Ok(all)
}

/// Deletes the chunks of a raw table that one of these references owns.
async fn delete_chunks(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    raw: &Table,
    owners: &[(&Column, &Values)],
) -> Result<DeletedSeries, Failure> {
    let mut names = Vec::with_capacity(owners.len());
    let mut conditions = Vec::with_capacity(owners.len());
    let mut counts = Vec::with_capacity(owners.len());
    for (parameter, (column, _)) in (2..).zip(owners) {
        let name = column_name(column);
        let data_type = sql_type(column.data_type);
        let condition = format!("{name} = ANY(${parameter}::{data_type}[])");
        // A series has many chunks and is counted once, by its owner.
        counts.push(format!(
            "count(DISTINCT {name}) FILTER (WHERE _execution IS DISTINCT FROM $1 AND {condition})"
        ));
        conditions.push(condition);
        names.push(name);
    }
    let recording = context.recording(raw);
    let now = owners.len() + 2;
    let query = statement(format!(
        "WITH deleted AS (DELETE FROM {chunks} c WHERE {conditions} RETURNING _points, _execution, {names}, \
         c._chunk::text AS key, ${now} AS at, {before}){recorded} \
         SELECT sum(_points)::bigint AS points, ARRAY[{counts}] AS of_others FROM deleted",
        chunks = context.schemas.chunk_table(&raw.name),
        conditions = conditions.join(" OR "),
        names = names.join(", "),
        counts = counts.join(", "),
        before = recording.row("c"),
        recorded = recording.part(ChangeAction::Deleted, "deleted", now),
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid());
    let owners = owners.iter();
    let query = owners.fold(query, |query, (_, keys)| bind_values(query, keys));
    let query = query.bind::<Timestamptz, _>(context.now);
    let deleted: DeletedRow = recording.bind(query).get_result(connection).await?;
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(DeletedSeries {
        points: deleted.points.map_or(0, count),
        of_others: deleted.of_others.into_iter().map(count).sum(),
    })
}
