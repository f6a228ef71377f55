//! Applies a plan: one transaction for rows, series, their record and their execution.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{Catalog, CatalogVersion, Table},
    data::{
        read::RowJson,
        write::{
            Action, Problem, RowAddress, RowKey, SeriesOutcome, TableOutcome, TableStep,
            WriteOutcome, WritePlan,
        },
    },
    ids::{ExecutionId, OrganizationId},
    scalar::{KeyValue, Values},
};
use labdata_ports::{
    PortError,
    data::{Attribution, WriteError},
};
use time::OffsetDateTime;

use super::{
    delete::{Doomed, delete_rows},
    execution::{
        KnownJobs, NewExecution, create_execution, ensure_job, execution_of, require_open,
    },
    failure::Failure,
    insert::insertion,
    ledger::{Entry, LedgerAction, record},
    modify::{Resolved, match_rows, modify_rows},
    outcome::{count, created, key_at, references},
    series::{ReadySeries, replace_series},
};
use crate::database::sql::{
    Kept, Schemas, bind_values, key_values, primary_key, primary_key_type, rendered_columns,
    sql_type, statement,
};

/// The most table writes of a request whose first insert stays prepared.
const MAX_KEPT: usize = 4;

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

/// The statement that takes the organization's catalog lock, shared: definitions wait until the
/// transaction ends.
pub(super) fn catalog_lock(organization: OrganizationId) -> String {
    format!(
        "SELECT pg_advisory_xact_lock_shared({})",
        crate::catalog::lock_key(organization)
    )
}

/// The version of the organization's definitions. Asked after the lock, with a snapshot of its own,
/// so that it cannot be stale.
async fn require_version(
    mut connection: &AsyncPgConnection,
    organization: OrganizationId,
    planned: CatalogVersion,
) -> Result<(), Failure> {
    let query = diesel::sql_query("SELECT catalog_version FROM labdata.organization WHERE id = $1")
        .bind::<SqlUuid, _>(organization.as_uuid());
    let standing: Standing = Kept(query).get_result(&mut connection).await?;
    if standing.catalog_version == planned.0 {
        Ok(())
    } else {
        Err(WriteError::CatalogChanged.into())
    }
}

/// Does all of a write but its beginning and its end: the caller holds the catalog lock, and
/// commits, or rolls a dry run back.
pub(super) async fn apply(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    plan: &WritePlan,
    attribution: &Attribution,
    jobs: &KnownJobs,
) -> Result<WriteOutcome, Failure> {
    let job_is_there = jobs.suffice(writing, &attribution.target);
    let opening = Opening::of(plan, job_is_there);
    opening.run(connection, writing, plan, attribution).await?;
    let mut outcome = WriteOutcome::default();
    let mut entries = Vec::new();
    for (index, step) in plan.tables.iter().enumerate() {
        let applied = apply_step(
            connection,
            writing,
            (index, step),
            &outcome.tables,
            plan.return_rows,
            opening.inserts && index == 0,
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
        if !opening.records {
            if !job_is_there {
                ensure_job(connection, writing, &attribution.target).await?;
            }
            note(connection, writing, attribution, &entries).await?;
        }
    }
    outcome.refs = references(plan, &outcome.tables);
    Ok(outcome)
}

/// The outcome of a plan of nothing but inserts, once it is applied.
pub(super) fn inserted(
    plan: &WritePlan,
    attribution: &Attribution,
) -> Result<WriteOutcome, PortError> {
    let mut outcome = WriteOutcome {
        execution: Some(execution_of(&attribution.target)),
        ..WriteOutcome::default()
    };
    for step in &plan.tables {
        let columns = resolve(step, &outcome.tables).map_err(Failure::into_port_error)?;
        outcome.tables.push(created(step, &columns));
    }
    outcome.refs = references(plan, &outcome.tables);
    Ok(outcome)
}

/// The new execution and the ledger, sent together.
async fn note(
    connection: &AsyncPgConnection,
    writing: &Writing<'_>,
    attribution: &Attribution,
    entries: &[Entry],
) -> Result<(), Failure> {
    let new = NewExecution::of(attribution);
    let (executions, recorded) = futures::join!(
        create_execution(connection, writing.organization, new.as_ref()),
        record(connection, writing, entries),
    );
    executions.and(recorded)
}

/// What is sent in the first round trip, beside the questions whether the write may be done at
/// all: where one of these says no, everything is rolled back. Most writes insert something first,
/// and many do nothing else.
#[derive(Clone, Copy)]
struct Opening {
    /// The first table write.
    inserts: bool,
    /// Execution and ledger as well, as that is all.
    records: bool,
}

impl Opening {
    fn of(plan: &WritePlan, job_is_there: bool) -> Self {
        let first = plan.tables.as_slice().first();
        let inserts = first.is_some_and(|step| step.action == Action::Insert && step.len > 0);
        let is_all = plan.tables.len() == 1 && plan.series.is_empty() && !plan.dry_run;
        Self {
            inserts,
            records: inserts && is_all && job_is_there,
        }
    }

    async fn run(
        self,
        connection: &AsyncPgConnection,
        writing: &Writing<'_>,
        plan: &WritePlan,
        attribution: &Attribution,
    ) -> Result<(), Failure> {
        let first = plan.tables.as_slice().first();
        let insert = async {
            let Some(step) = first.filter(|_| self.inserts) else {
                return Ok(());
            };
            let columns = step
                .columns
                .iter()
                .map(|column| (column.column, &column.values));
            let query = insertion(writing, &step.table, columns);
            let mut connection = connection;
            // A request of many table writes would leave as many statements behind.
            if plan.tables.len() <= MAX_KEPT {
                Kept(query).execute(&mut connection).await?;
            } else {
                query.execute(&mut connection).await?;
            }
            Ok::<(), Failure>(())
        };
        let noted = async {
            match first.filter(|_| self.records) {
                Some(step) => {
                    let entry = Entry::created(&step.table.name, count(step.len));
                    note(connection, writing, attribution, &[entry]).await
                }
                None => Ok(()),
            }
        };
        let (version, open, inserted, noted) = futures::join!(
            require_version(connection, writing.organization, plan.version),
            require_open(connection, writing, &attribution.target),
            insert,
            noted,
        );
        // In this order: an insert into a table that has gone fails because of it.
        version.and(open).and(inserted).and(noted)
    }
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
    is_inserted: bool,
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
            if !is_inserted {
                let borrowed = columns
                    .iter()
                    .map(|(index, values)| (*index, values.as_ref()));
                insertion(writing, &plan.table, borrowed)
                    .execute(connection)
                    .await?;
            }
            created(plan, &columns)
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
    let new_rows: HashSet<(&str, &KeyValue)> = plan
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
        let is_new = owner.is_some_and(|owner| new_rows.contains(&(owner, &parent)));
        ready.push(ReadySeries {
            step,
            parent,
            is_new,
            columns,
        });
    }
    drop(new_rows);
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
