//! Applies a plan: one transaction for rows, series, their record and their execution.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Catalog, Table},
    data_write::{
        Action, Problem, RowAddress, RowKey, SeriesOutcome, TableOutcome, TableStep, WriteOutcome,
        WritePlan,
    },
    execution::ExecutionState,
    ids::{ExecutionId, OrganizationId},
    read::RowJson,
    scalar::{KeyValue, Values},
};
use labdata_ports::{
    PortError,
    data::{Attribution, WriteError, WriteTarget},
};
use time::OffsetDateTime;

use super::{
    delete::{Doomed, delete_rows},
    failure::Failure,
    insert::insert_rows,
    ledger::{Entry, LedgerAction, record},
    modify::{Resolved, match_rows, modify_rows},
    series::{ReadySeries, replace_series},
};
use crate::sql::{
    Schemas, bind_values, key_values, primary_key, primary_key_type, rendered_columns, sql_type,
    statement,
};

/// What every statement of a write needs to know.
pub(crate) struct Writing<'w> {
    pub(crate) organization: OrganizationId,
    pub(crate) schemas: Schemas,
    pub(crate) catalog: &'w Catalog,
    pub(crate) execution: ExecutionId,
    pub(crate) now: OffsetDateTime,
    /// How often this write clashed with others before.
    pub(crate) attempt: u32,
}

#[derive(QueryableByName)]
struct Standing {
    #[diesel(sql_type = BigInt)]
    catalog_version: i64,
}

#[derive(QueryableByName)]
struct ExecutionStanding {
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    deadline: Option<OffsetDateTime>,
}

/// Takes the organization's catalog lock, shared: definitions wait until the transaction ends.
/// The version is read after it, with a snapshot of its own, so that it cannot be stale.
pub(crate) async fn lock_catalog(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<i64, diesel::result::Error> {
    diesel::sql_query("SELECT pg_advisory_xact_lock_shared($1)")
        .bind::<BigInt, _>(crate::catalog::lock_key(organization))
        .execute(connection)
        .await?;
    let standing: Standing =
        diesel::sql_query("SELECT catalog_version FROM labdata.organization WHERE id = $1")
            .bind::<SqlUuid, _>(organization.as_uuid())
            .get_result(connection)
            .await?;
    Ok(standing.catalog_version)
}

/// Does all of a write but its end: the caller commits, or rolls a dry run back.
pub(crate) async fn apply(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    plan: &WritePlan,
    attribution: &Attribution,
) -> Result<WriteOutcome, Failure> {
    let version = lock_catalog(connection, writing.organization).await?;
    if version != plan.version.0 {
        return Err(WriteError::CatalogChanged.into());
    }
    if let WriteTarget::Existing(execution) = &attribution.target {
        require_open(connection, writing, *execution).await?;
    }
    let mut outcome = WriteOutcome::default();
    let mut entries = Vec::new();
    for (index, step) in plan.tables.iter().enumerate() {
        let applied = apply_step(
            connection,
            writing,
            (index, step),
            &outcome.tables,
            plan.return_rows,
            &mut entries,
        )
        .await?;
        outcome.tables.push(applied);
    }
    apply_series(connection, writing, plan, &mut outcome, &mut entries).await?;
    if plan.dry_run {
        connection
            .batch_execute("SET CONSTRAINTS ALL IMMEDIATE")
            .await?;
    } else {
        outcome.execution = Some(writing.execution);
        if let WriteTarget::New { .. } = &attribution.target {
            create_execution(connection, writing, attribution).await?;
        }
        record(connection, writing, &entries).await?;
    }
    outcome.refs = plan
        .labels
        .iter()
        .filter_map(|(label, address)| {
            Some((
                label.clone(),
                key_at(&outcome.tables, *address)?.to_string(),
            ))
        })
        .collect();
    Ok(outcome)
}

/// The execution must exist and be open, and stays so until the write has ended.
async fn require_open(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    execution: ExecutionId,
) -> Result<(), Failure> {
    let found: Vec<ExecutionStanding> = diesel::sql_query(
        "SELECT status, deadline FROM labdata.job_execution WHERE id = $1 AND organization_id = $2 FOR SHARE",
    )
    .bind::<SqlUuid, _>(execution.as_uuid())
    .bind::<SqlUuid, _>(writing.organization.as_uuid())
    .load(connection)
    .await?;
    let Some(standing) = found.into_iter().next() else {
        return Err(WriteError::ExecutionNotFound.into());
    };
    if standing.status != "running" {
        return Err(WriteError::ExecutionEnded(standing.status).into());
    }
    let state = ExecutionState::Running {
        deadline: standing.deadline,
    };
    if state.is_open(writing.now) {
        Ok(())
    } else {
        Err(WriteError::ExecutionEnded("failed".to_owned()).into())
    }
}

/// A new execution, completed with the write, and its job where that is missing. Last of all, so
/// that writers under one new job wait for each other only while they commit.
async fn create_execution(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    attribution: &Attribution,
) -> Result<(), Failure> {
    let WriteTarget::New {
        execution,
        job_name,
        job,
    } = &attribution.target
    else {
        return Ok(());
    };
    diesel::sql_query(
        "WITH made AS (INSERT INTO labdata.job (id, organization_id, name, archived, created_at) \
         SELECT $1, $2, $3, false, $4 WHERE NOT EXISTS \
         (SELECT 1 FROM labdata.job WHERE organization_id = $2 AND name = $3) \
         ON CONFLICT (organization_id, name) DO NOTHING RETURNING id) \
         SELECT id FROM made",
    )
    .bind::<SqlUuid, _>(job.as_uuid())
    .bind::<SqlUuid, _>(writing.organization.as_uuid())
    .bind::<Text, _>(job_name.as_str())
    .bind::<Timestamptz, _>(attribution.now)
    .execute(connection)
    .await?;
    let inserted = diesel::sql_query(
        "INSERT INTO labdata.job_execution \
         (id, organization_id, job_id, origin, status, started_by, created_at, started_at, completed_at) \
         SELECT $1, $2, job.id, 'data_write', 'completed', $3, $4, $4, $4 \
         FROM labdata.job WHERE organization_id = $2 AND name = $5",
    )
    .bind::<SqlUuid, _>(execution.as_uuid())
    .bind::<SqlUuid, _>(writing.organization.as_uuid())
    .bind::<SqlUuid, _>(attribution.user.as_uuid())
    .bind::<Timestamptz, _>(attribution.now)
    .bind::<Text, _>(job_name.as_str())
    .execute(connection)
    .await?;
    if inserted == 1 {
        Ok(())
    } else {
        Err(Failure::Clash("the job vanished".to_owned()))
    }
}

fn key_at(tables: &[TableOutcome], address: RowAddress) -> Option<&KeyValue> {
    tables.get(address.table)?.ids.get(address.row)
}

/// A step's columns, with the keys of rows of earlier steps that were not known when it was
/// planned. Rows of the step itself are known once it has matched them ([`modify_rows`]).
fn resolve<'p>(step: &'p TableStep, done: &[TableOutcome]) -> Result<Resolved<'p>, Failure> {
    let mut resolved = Vec::with_capacity(step.columns.len());
    for column in &step.columns {
        resolved.push((
            column.column,
            fill_late(&column.values, &column.late, done)?,
        ));
    }
    Ok(resolved)
}

fn fill_late<'p>(
    values: &'p Values,
    late: &[(usize, RowAddress)],
    done: &[TableOutcome],
) -> Result<Cow<'p, Values>, Failure> {
    let mut filled = Cow::Borrowed(values);
    for (row, address) in late
        .iter()
        .filter(|(_, address)| address.table < done.len())
    {
        let Some(key) = key_at(done, *address) else {
            return Err(PortError::Internal(format!("no row at {address:?} for row {row}")).into());
        };
        filled.to_mut().set_key(*row, key.clone());
    }
    Ok(filled)
}

async fn apply_step(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: (usize, &TableStep),
    done: &[TableOutcome],
    return_rows: bool,
    entries: &mut Vec<Entry>,
) -> Result<TableOutcome, Failure> {
    let (_, plan) = step;
    let name = &plan.table.name;
    if plan.len == 0 {
        let rows = return_rows.then(Vec::new);
        return Ok(TableOutcome {
            table: name.clone(),
            rows,
            ..TableOutcome::default()
        });
    }
    let columns = resolve(plan, done)?;
    let mut outcome = match &plan.action {
        Action::Insert => {
            let borrowed: Vec<(usize, &Values)> = columns
                .iter()
                .map(|(index, values)| (*index, values.as_ref()))
                .collect();
            insert_rows(connection, writing, &plan.table, &borrowed).await?;
            let ids = inserted_keys(plan, &columns);
            TableOutcome {
                table: name.clone(),
                created: count(ids.len()),
                ids,
                ..TableOutcome::default()
            }
        }
        Action::Upsert { key, on_match } | Action::Update { key, on_match } => {
            let (outcome, changed) =
                modify_rows(connection, writing, step, key, *on_match, columns).await?;
            entries.push(Entry::of(name, LedgerAction::Updated, changed));
            outcome
        }
        Action::Delete { key, cascade } => {
            let rows = if return_rows { Some(()) } else { None };
            let before = match rows {
                Some(()) => rows_before_delete(connection, writing, step, key, &columns).await?,
                None => None,
            };
            let (mut outcome, doomed) =
                delete_rows(connection, writing, step, key, *cascade, &columns).await?;
            note_deleted(entries, &outcome, doomed);
            outcome.rows = before;
            return Ok(outcome);
        }
    };
    if outcome.created > 0 {
        entries.push(Entry::created(name, outcome.created));
    }
    if return_rows {
        outcome.rows = Some(read_rows(connection, writing, &plan.table, &outcome.ids).await?);
    }
    Ok(outcome)
}

async fn rows_before_delete(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: (usize, &TableStep),
    key: &[usize],
    columns: &Resolved<'_>,
) -> Result<Option<Vec<RowJson>>, Failure> {
    let matched = match_rows(connection, writing, step, key, columns, true).await?;
    let ids: Vec<KeyValue> = matched.into_iter().flatten().collect();
    Ok(Some(
        read_rows(connection, writing, &step.1.table, &ids).await?,
    ))
}

fn note_deleted(entries: &mut Vec<Entry>, outcome: &TableOutcome, doomed: Doomed) {
    for (table, keys) in doomed {
        entries.push(Entry::of(
            &table,
            LedgerAction::Deleted,
            keys.iter().map(ToString::to_string).collect(),
        ));
    }
    for (table, points) in outcome.cascade_deleted.iter().flatten() {
        if entries.iter().all(|entry| entry.table() != table) {
            entries.push(Entry::points(
                table,
                LedgerAction::PointsDeleted,
                *points,
                Vec::new(),
            ));
        }
    }
}

fn inserted_keys(step: &TableStep, columns: &Resolved<'_>) -> Vec<KeyValue> {
    let Some((own_key, _)) = step.table.primary_key() else {
        return Vec::new();
    };
    let values = columns
        .iter()
        .find(|(index, _)| *index == own_key)
        .map(|(_, values)| values.as_ref());
    match values {
        Some(Values::Text(keys)) => keys.iter().flatten().cloned().map(KeyValue::Text).collect(),
        Some(Values::Integer(keys)) => keys
            .iter()
            .flatten()
            .copied()
            .map(KeyValue::Integer)
            .collect(),
        Some(Values::Uuid(keys)) => keys.iter().flatten().copied().map(KeyValue::Uuid).collect(),
        _ => Vec::new(),
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[derive(QueryableByName)]
struct Rendered {
    #[diesel(sql_type = Text)]
    rendered: String,
}

/// Rows by their keys, in that order.
async fn read_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    table: &Arc<Table>,
    ids: &[KeyValue],
) -> Result<Vec<RowJson>, Failure> {
    let data_type = primary_key_type(table);
    let keys = key_values(ids.iter().cloned(), data_type);
    let query = statement(format!(
        "SELECT row_to_json(r)::text AS rendered FROM unnest($1::{}[]) WITH ORDINALITY AS u(k, place) \
         JOIN {} t ON t.{} = u.k CROSS JOIN LATERAL (SELECT {}) r ORDER BY u.place",
        sql_type(data_type),
        writing.schemas.table(&table.name),
        primary_key(table),
        rendered_columns(table, "t"),
    ));
    let rows: Vec<Rendered> = bind_values(query, &keys).load(connection).await?;
    Ok(rows
        .into_iter()
        .map(|row| RowJson::from_rendered(row.rendered))
        .collect())
}

async fn apply_series(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    plan: &WritePlan,
    outcome: &mut WriteOutcome,
    entries: &mut Vec<Entry>,
) -> Result<(), Failure> {
    let mut seen: BTreeMap<(&str, usize, KeyValue), usize> = BTreeMap::new();
    let created: HashSet<(&str, &KeyValue)> = plan
        .tables
        .iter()
        .zip(&outcome.tables)
        .filter(|(step, _)| step.action == Action::Insert)
        .flat_map(|(step, done)| done.ids.iter().map(|id| (step.table.name.as_str(), id)))
        .collect();
    let mut ready = Vec::with_capacity(plan.series.len());
    for (index, step) in plan.series.iter().enumerate() {
        let parent = match &step.parent {
            RowKey::Known(key) => key.clone(),
            RowKey::Late(address) => {
                key_at(&outcome.tables, *address).cloned().ok_or_else(|| {
                    Failure::Problems(vec![Problem::at(
                        format!("series[{index}].parent"),
                        "the parent row was not written",
                    )])
                })?
            }
        };
        if let Some(first) = seen.insert(
            (&step.table.name, step.parent_column, parent.clone()),
            index,
        ) {
            return Err(Failure::Problems(vec![Problem::at(
                format!("series[{index}].parent"),
                format!(
                    "series[{first}] writes the same parent's series in \"{}\"; put all points into one",
                    step.table.name
                ),
            )]));
        }
        let mut columns = Vec::with_capacity(step.columns.len());
        for column in &step.columns {
            columns.push((
                column.column,
                fill_late(&column.values, &column.late, &outcome.tables)?,
            ));
        }
        let owner = step
            .table
            .columns
            .get(step.parent_column)
            .and_then(|column| column.references.as_deref());
        let is_new = owner.is_some_and(|owner| created.contains(&(owner, &parent)));
        ready.push(ReadySeries {
            step,
            parent,
            is_new,
            columns,
        });
    }
    drop(created);
    let replaced = replace_series(connection, writing, &ready).await?;
    let mut written: BTreeMap<&str, (u64, Vec<String>)> = BTreeMap::new();
    let mut gone: BTreeMap<&str, (u64, Vec<String>)> = BTreeMap::new();
    for (series, points_replaced) in ready.into_iter().zip(replaced) {
        let points_written = count(series.step.points);
        let name = series.step.table.name.as_str();
        let entry = written.entry(name).or_default();
        entry.0 += points_written;
        entry.1.push(series.parent.to_string());
        if points_replaced > 0 {
            let entry = gone.entry(name).or_default();
            entry.0 += points_replaced;
            entry.1.push(series.parent.to_string());
        }
        outcome.series.push(SeriesOutcome {
            table: name.to_owned(),
            parent: series.parent,
            points_written,
            points_replaced,
        });
    }
    entries.extend(written.into_iter().map(|(table, (points, parents))| {
        Entry::points(table, LedgerAction::SeriesWritten, points, parents)
    }));
    entries.extend(gone.into_iter().map(|(table, (points, parents))| {
        Entry::points(table, LedgerAction::SeriesReplaced, points, parents)
    }));
    Ok(())
}
