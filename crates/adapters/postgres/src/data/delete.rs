//! Deletes rows, and what goes with them.

use std::collections::{BTreeMap, HashMap, HashSet};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Column, Table},
    data::write::{Problem, TableOutcome, TableStep},
    scalar::{KeyValue, Values},
};

use super::{
    apply::Writing,
    failure::Failure,
    modify::{Resolved, match_rows},
};
use crate::database::sql::{
    bind_values, ident, key_from_text, key_values, primary_key, primary_key_type, sql_type,
    statement,
};

/// Rows that a delete takes away, per table.
pub(super) type Doomed = BTreeMap<String, Vec<KeyValue>>;

#[derive(QueryableByName)]
struct Reference {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Text)]
    target: String,
}

#[derive(QueryableByName)]
struct Gone {
    #[diesel(sql_type = Nullable<BigInt>)]
    points: Option<i64>,
    #[diesel(sql_type = Array<BigInt>)]
    foreign_series: Vec<i64>,
}

/// What went from a raw table with the rows that owned it.
#[derive(Debug, Default)]
pub(super) struct GoneSeries {
    /// How many points.
    pub(super) points: u64,
    /// How many series that another execution had written.
    pub(super) foreign_series: u64,
}

/// Switches PostgreSQL's own check of references off for the statements that follow, where the
/// role may: it asks one or two queries per deleted row and reference, ten times the cost of the
/// delete itself. What it would find is settled by then: the rows are locked against new
/// references, and those that exist were looked for after that (docs/adr/0007). Elsewhere the
/// checks run, and only cost their time.
const CHECKS_OFF: &str = "SET CONSTRAINTS ALL DEFERRED; \
     DO $$ BEGIN SET LOCAL session_replication_role = replica; \
     EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";

/// Switches them on again; those that were put off run now.
const CHECKS_ON: &str = "DO $$ BEGIN SET LOCAL session_replication_role = origin; \
     EXCEPTION WHEN insufficient_privilege THEN NULL; END $$; \
     SET CONSTRAINTS ALL IMMEDIATE";

/// Deletes the rows that a step's keys match; returns also every row that went with them.
pub(super) async fn delete_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: (usize, &TableStep),
    key: &[usize],
    cascade: bool,
    columns: &Resolved<'_>,
) -> Result<(TableOutcome, Doomed), Failure> {
    let (_, plan) = step;
    let matched = match_rows(connection, writing, step, key, columns, true).await?;
    let ids: Vec<KeyValue> = matched.into_iter().flatten().collect();
    let mut doomed: HashMap<String, HashSet<KeyValue>> = HashMap::new();
    doomed.insert(plan.table.name.clone(), ids.iter().cloned().collect());
    if cascade {
        close_over_references(connection, writing, &plan.table, &mut doomed).await?;
    } else {
        refuse_referenced(connection, writing, step, &ids, &doomed).await?;
    }
    let gone = delete_all(connection, writing, &doomed).await?;
    let mut cascaded: BTreeMap<String, u64> = gone
        .into_iter()
        .map(|(table, gone)| (table, gone.points))
        .filter(|(_, points)| *points > 0)
        .collect();
    for (table, keys) in &doomed {
        let extra = if *table == plan.table.name {
            keys.len().saturating_sub(ids.len())
        } else {
            keys.len()
        };
        if extra > 0 {
            *cascaded.entry(table.clone()).or_default() += u64::try_from(extra).unwrap_or(u64::MAX);
        }
    }
    let outcome = TableOutcome {
        table: plan.table.name.clone(),
        deleted: u64::try_from(ids.len()).unwrap_or(u64::MAX),
        ids,
        cascade_deleted: (cascade || !cascaded.is_empty()).then_some(cascaded),
        ..TableOutcome::default()
    };
    let doomed = doomed
        .into_iter()
        .map(|(table, keys)| (table, keys.into_iter().collect()))
        .collect();
    Ok((outcome, doomed))
}

/// Rows of a table that reference any of these, locked: their key, and what they reference.
async fn referencing_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    table: &Table,
    column: &Column,
    targets: impl IntoIterator<Item = KeyValue>,
) -> Result<Vec<Reference>, Failure> {
    let targets = key_values(targets, column.data_type);
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let key = primary_key(table);
    let name = ident(&column.sql_name());
    let query = statement(format!(
        "SELECT t.{key}::text AS key, t.{name}::text AS target FROM {} t WHERE t.{name} = ANY($1::{}[]) ORDER BY t.{key} FOR UPDATE",
        writing.schemas.table(&table.name),
        sql_type(column.data_type),
    ));
    Ok(bind_values(query, &targets).load(connection).await?)
}

/// Adds rows that reference doomed rows, and rows that reference those, each once, whatever the
/// cycles among them.
async fn close_over_references(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    root: &Table,
    doomed: &mut HashMap<String, HashSet<KeyValue>>,
) -> Result<(), Failure> {
    let first: Vec<KeyValue> = doomed.values().flatten().cloned().collect();
    let mut frontier = vec![(root.name.clone(), first)];
    while let Some((table, keys)) = frontier.pop() {
        for (other, column) in writing
            .catalog
            .referencing(&table)
            .filter(|(other, _)| !other.is_raw())
        {
            let found =
                referencing_rows(connection, writing, other, column, keys.iter().cloned()).await?;
            let data_type = primary_key_type(other);
            let known = doomed.entry(other.name.clone()).or_default();
            let new: Vec<KeyValue> = found
                .into_iter()
                .map(|reference| key_from_text(reference.key, data_type))
                .filter(|key| known.insert(key.clone()))
                .collect();
            if !new.is_empty() {
                frontier.push((other.name.clone(), new));
            }
        }
    }
    doomed.retain(|_, keys| !keys.is_empty());
    Ok(())
}

/// Without cascade, rows of other tables that reference the deleted ones forbid it.
async fn refuse_referenced(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: (usize, &TableStep),
    ids: &[KeyValue],
    doomed: &HashMap<String, HashSet<KeyValue>>,
) -> Result<(), Failure> {
    let (step_index, plan) = step;
    let mut counts: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let place: HashMap<&KeyValue, usize> = ids
        .iter()
        .enumerate()
        .map(|(row, key)| (key, row))
        .collect();
    for (other, column) in writing
        .catalog
        .referencing(&plan.table.name)
        .filter(|(other, _)| !other.is_raw())
    {
        let data_type = primary_key_type(other);
        for reference in
            referencing_rows(connection, writing, other, column, ids.iter().cloned()).await?
        {
            let own = key_from_text(reference.key, data_type);
            if doomed
                .get(&other.name)
                .is_some_and(|keys| keys.contains(&own))
            {
                continue;
            }
            let target = key_from_text(reference.target, column.data_type);
            if let Some(row) = place.get(&target) {
                *counts.entry((*row, other.name.clone())).or_default() += 1;
            }
        }
    }
    if counts.is_empty() {
        return Ok(());
    }
    let problems = counts
        .into_iter()
        .map(|((row, table), count)| {
            let rows = if count == 1 {
                "row references"
            } else {
                "rows reference"
            };
            let key = ids.get(row).map(ToString::to_string).unwrap_or_default();
            Problem::at(
                format!("tables[{step_index}].rows[{row}]"),
                format!(
                    "{count} {rows} \"{key}\" from \"{table}\"; delete them first, or set cascade"
                ),
            )
        })
        .collect();
    Err(Failure::Problems(Problem::first_of(problems)))
}

/// Deletes rows of several tables that may reference each other in any way, and their series.
///
/// The caller MUST have locked the rows `FOR UPDATE`, and looked after that for rows that
/// reference them and stay.
pub(super) async fn delete_all(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    doomed: &HashMap<String, HashSet<KeyValue>>,
) -> Result<BTreeMap<String, GoneSeries>, Failure> {
    let keys: HashMap<&str, Values> = doomed
        .iter()
        .filter_map(|(name, keys)| {
            let data_type = primary_key_type(writing.catalog.table(name)?);
            Some((name.as_str(), key_values(keys.iter().cloned(), data_type)))
        })
        .collect();
    let gone = delete_series(connection, writing, &keys).await?;
    connection.batch_execute(CHECKS_OFF).await?;
    for (name, keys) in &keys {
        let Some(table) = writing.catalog.table(name) else {
            continue;
        };
        let query = statement(format!(
            "DELETE FROM {} t USING unnest($1::{}[]) AS u(k) WHERE t.{} = u.k",
            writing.schemas.table(name),
            sql_type(primary_key_type(table)),
            primary_key(table),
        ));
        bind_values(query, keys).execute(connection).await?;
    }
    connection.batch_execute(CHECKS_ON).await?;
    Ok(gone)
}

/// Deletes the series that doomed rows own or that name them otherwise.
async fn delete_series(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    doomed: &HashMap<&str, Values>,
) -> Result<BTreeMap<String, GoneSeries>, Failure> {
    let mut all_gone = BTreeMap::new();
    for raw in writing
        .catalog
        .tables()
        .iter()
        .filter(|table| table.is_raw())
    {
        let owners: Vec<(&Column, &Values)> = raw
            .references()
            .filter_map(|(_, column)| Some((column, doomed.get(column.references.as_deref()?)?)))
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
            "WITH gone AS (DELETE FROM {} WHERE {} RETURNING _points, _execution, {}) \
             SELECT sum(_points)::bigint AS points, ARRAY[{}] AS foreign_series FROM gone",
            writing.schemas.chunk_table(&raw.name),
            conditions.join(" OR "),
            names.join(", "),
            counts.join(", "),
        ))
        .bind::<SqlUuid, _>(writing.execution.as_uuid());
        for (_, keys) in owners {
            query = bind_values(query, keys);
        }
        let gone: Gone = query.get_result(connection).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        all_gone.insert(
            raw.name.clone(),
            GoneSeries {
                points: gone.points.map_or(0, count),
                foreign_series: gone.foreign_series.into_iter().map(count).sum(),
            },
        );
    }
    Ok(all_gone)
}
