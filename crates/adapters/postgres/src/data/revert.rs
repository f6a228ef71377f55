//! Undoes what an execution created.

use std::collections::{BTreeMap, HashMap, HashSet};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::Table,
    data::revert::{Blocker, RevertReport},
    scalar::KeyValue,
};
use labdata_ports::{PortError, data::RevertError};

use super::{
    apply::Writing,
    delete::{GoneSeries, delete_all},
    failure::Failure,
    ledger::LedgerAction,
};
use crate::database::sql::{
    bind_values, ident, key_from_text, key_values, primary_key, primary_key_type, sql_type,
    statement,
};

/// How many ids of blocking rows are named.
const NAMED_BLOCKERS: usize = 5;

/// Why a revert stopped.
pub(crate) enum RevertFailure {
    Refused(RevertError),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for RevertFailure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = BigInt)]
    row_count: i64,
    #[diesel(sql_type = Nullable<Array<Text>>)]
    ids: Option<Vec<String>>,
}

#[derive(QueryableByName)]
struct CreatedRow {
    #[diesel(sql_type = Text)]
    key: String,
    /// Whether it was changed since, by whomever.
    #[diesel(sql_type = Bool)]
    touched: bool,
}

#[derive(QueryableByName)]
struct Key {
    #[diesel(sql_type = Text)]
    key: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

type Created = HashMap<String, HashSet<KeyValue>>;

/// Deletes the rows that `writing.execution` created. The caller commits.
pub(crate) async fn revert(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
) -> Result<RevertReport, RevertFailure> {
    // Locks out closing, writing and another revert of the same execution.
    let known = diesel::sql_query(
        "SELECT id FROM labdata.job_execution WHERE id = $1 AND organization_id = $2 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(writing.execution.as_uuid())
    .bind::<SqlUuid, _>(writing.organization.as_uuid())
    .execute(connection)
    .await?;
    if known == 0 {
        return Err(RevertFailure::Refused(
            PortError::NotFound("execution").into(),
        ));
    }
    let lines: Vec<Line> = diesel::sql_query(
        "UPDATE labdata.write_ledger SET reverted_at = $2 WHERE execution_id = $1 AND reverted_at IS NULL \
         RETURNING table_name, action, row_count, ids",
    )
    .bind::<SqlUuid, _>(writing.execution.as_uuid())
    .bind::<Timestamptz, _>(writing.now)
    .load(connection)
    .await?;
    let mut created_counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines
        .iter()
        .filter(|line| line.action == LedgerAction::Created.as_str())
    {
        *created_counts.entry(line.table_name.as_str()).or_default() +=
            u64::try_from(line.row_count).unwrap_or_default();
    }
    let mut created = Created::new();
    let mut touched: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut report = RevertReport::default();
    for (name, count) in &created_counts {
        let mut keys = HashSet::new();
        if let Some(table) = writing.catalog.table(name).filter(|table| !table.is_raw()) {
            let data_type = primary_key_type(table);
            for row in created_rows(connection, writing, table).await? {
                if row.touched {
                    touched.entry(name).or_default().push(row.key.clone());
                }
                keys.insert(key_from_text(row.key, data_type));
            }
        }
        let found = u64::try_from(keys.len()).unwrap_or(u64::MAX);
        report.deleted_count += found;
        report.skipped_count += count.saturating_sub(found);
        if !keys.is_empty() {
            created.insert((*name).to_owned(), keys);
        }
    }
    let blockers = find_blockers(connection, writing, &created).await?;
    if !blockers.is_empty() {
        return Err(RevertFailure::Refused(RevertError::Blocked(blockers)));
    }
    report.warnings = own_warnings(&lines, &created);
    report
        .warnings
        .extend(changed_by_others(connection, writing, &touched).await?);
    let gone = delete_all(connection, writing, &created).await?;
    report.warnings.extend(series_of_others(&gone));
    report.raws_deleted_count = gone.values().map(|gone| gone.points).sum();
    Ok(report)
}

/// The rows of a table that the execution created, locked.
async fn created_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    table: &Table,
) -> Result<Vec<CreatedRow>, Failure> {
    let key = primary_key(table);
    let rows = statement(format!(
        "SELECT t.{key}::text AS key, t.updated_at <> t.created_at AS touched \
         FROM {} t WHERE t.created_by_execution_id = $1 ORDER BY t.{key} FOR UPDATE",
        writing.schemas.table(&table.name)
    ))
    .bind::<SqlUuid, _>(writing.execution.as_uuid())
    .load(connection)
    .await?;
    Ok(rows)
}

/// Rows that this execution did not create, and that reference rows which it did.
async fn find_blockers(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    created: &Created,
) -> Result<Vec<Blocker>, Failure> {
    let mut blockers: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for (target, keys) in created {
        for (other, column) in writing
            .catalog
            .referencing(target)
            .filter(|(other, _)| !other.is_raw())
        {
            let values = key_values(keys.iter().cloned(), column.data_type);
            let query = statement(format!(
                "SELECT t.{key}::text AS key FROM {table} t WHERE t.{column} = ANY($1::{data_type}[]) \
                 AND t.created_by_execution_id IS DISTINCT FROM $2",
                key = primary_key(other),
                table = writing.schemas.table(&other.name),
                column = ident(&column.sql_name()),
                data_type = sql_type(column.data_type),
            ));
            let rows: Vec<Key> = bind_values(query, &values)
                .bind::<SqlUuid, _>(writing.execution.as_uuid())
                .load(connection)
                .await?;
            if !rows.is_empty() {
                blockers
                    .entry(other.name.clone())
                    .or_default()
                    .extend(rows.into_iter().map(|row| row.key));
            }
        }
    }
    Ok(blockers
        .into_iter()
        .map(|(table, ids)| {
            let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
            let mut ids: Vec<String> = ids.into_iter().collect();
            ids.sort();
            ids.truncate(NAMED_BLOCKERS);
            Blocker { table, count, ids }
        })
        .collect())
}

/// What the execution did to rows and series that it had not created.
fn own_warnings(lines: &[Line], created: &Created) -> Vec<String> {
    let mut sums: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
    let created_texts: HashMap<&str, HashSet<String>> = created
        .iter()
        .map(|(table, keys)| {
            (
                table.as_str(),
                keys.iter().map(ToString::to_string).collect(),
            )
        })
        .collect();
    let any_created = |id: &String| created_texts.values().any(|keys| keys.contains(id));
    for line in lines {
        let count = u64::try_from(line.row_count).unwrap_or_default();
        let ids = line.ids.as_deref().unwrap_or_default();
        let (what, count) = match line.action.as_str() {
            "updated" => {
                let own = created_texts.get(line.table_name.as_str());
                let others = ids
                    .iter()
                    .filter(|id| own.is_none_or(|keys| !keys.contains(*id)))
                    .count();
                ("updated rows", u64::try_from(others).unwrap_or(u64::MAX))
            }
            "deleted" => ("deleted rows", count),
            "points_deleted" => ("points deleted with their rows", count),
            "series_written" => {
                let others = ids.iter().filter(|id| !any_created(id)).count();
                (
                    "series written to rows that existed before",
                    u64::try_from(others).unwrap_or(u64::MAX),
                )
            }
            "series_replaced" => {
                let others = ids.iter().filter(|id| !any_created(id)).count();
                ("replaced series", u64::try_from(others).unwrap_or(u64::MAX))
            }
            _ => continue,
        };
        if count > 0 {
            *sums.entry((line.table_name.as_str(), what)).or_default() += count;
        }
    }
    sums.into_iter()
        .map(|((table, what), count)| format!("not undone: {count} {what} of \"{table}\""))
        .collect()
}

/// Created rows that another execution has changed since, of those that were changed at all.
async fn changed_by_others(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    touched: &BTreeMap<&str, Vec<String>>,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    for (table, ids) in touched {
        let changed: Count = diesel::sql_query(
            "SELECT count(DISTINCT c.key) AS count FROM labdata.write_ledger l CROSS JOIN LATERAL unnest(l.ids) AS c(key) \
             WHERE l.organization_id = $1 AND l.table_name = $2 AND l.action = 'updated' AND l.execution_id <> $3 AND c.key = ANY($4)",
        )
        .bind::<SqlUuid, _>(writing.organization.as_uuid())
        .bind::<Text, _>(*table)
        .bind::<SqlUuid, _>(writing.execution.as_uuid())
        .bind::<Array<Text>, _>(ids)
        .get_result(connection)
        .await?;
        if changed.count > 0 {
            warnings.push(format!(
                "{} rows of \"{table}\" were deleted although another execution had changed them since",
                changed.count
            ));
        }
    }
    Ok(warnings)
}

/// Series that another execution wrote to created rows, which went with them.
fn series_of_others(gone: &BTreeMap<String, GoneSeries>) -> impl Iterator<Item = String> + '_ {
    gone.iter()
        .filter(|(_, gone)| gone.foreign_series > 0)
        .map(|(table, gone)| {
            format!(
                "{} series of \"{table}\" that another execution wrote were deleted with their rows",
                gone.foreign_series
            )
        })
}
