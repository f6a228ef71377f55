//! Applies a plan: one transaction for rows, series, their record and their execution.

use std::{collections::HashSet, sync::Arc};

use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::Table,
    data::{
        read::RowJson,
        write::{
            Action, LedgerEntry, ResolvedColumns, SeriesOutcome, TableOutcome, TableStep,
            WriteOutcome, WritePlan,
        },
    },
    scalar::KeyValue,
};
use labdata_ports::data::Attribution;

use super::{
    context::WriteContext,
    delete::{close_over_references, delete_all, stored_references},
    execution::{KnownJobs, ensure_job, execution_of},
    failure::Failure,
    first_insert::{FirstInsert, record_write},
    insert::insertion,
    matching::match_rows,
    modify::modify_rows,
    series::{ReadySeries, replace_series},
};
use crate::database::sql::{
    bind_values, key_values, primary_key, primary_key_type, rendered_columns, sql_type, statement,
};

/// Applies a write between its beginning and its end: the caller holds the catalog lock, and
/// commits, or rolls a dry run back.
pub(super) async fn apply(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    plan: &WritePlan,
    attribution: &Attribution,
    jobs: &KnownJobs,
) -> Result<WriteOutcome, Failure> {
    let has_job = jobs.suffice(context.organization, &attribution.target);
    let first = FirstInsert::of(plan, has_job);
    first.run(connection, context, plan, attribution).await?;
    let mut outcome = WriteOutcome::default();
    let mut writer = StepWriter {
        connection,
        context,
        return_rows: plan.return_rows,
        entries: Vec::new(),
    };
    for step in &plan.tables {
        let is_inserted = first.inserts && step.index == 0;
        let applied = writer.apply(step, &outcome.tables, is_inserted).await?;
        outcome.tables.push(applied);
    }
    let mut entries = writer.entries;
    outcome.series = apply_series(connection, context, plan, &outcome.tables).await?;
    entries.extend(LedgerEntry::of_series(&outcome.series));
    if plan.dry_run {
        connection
            .batch_execute("SET CONSTRAINTS ALL IMMEDIATE")
            .await?;
    } else {
        outcome.execution = Some(context.execution);
        if !first.records {
            if !has_job {
                ensure_job(connection, context, &attribution.target).await?;
            }
            record_write(connection, context, attribution, &entries).await?;
        }
    }
    outcome.set_refs(plan);
    Ok(outcome)
}

/// The outcome of an applied plan that consists of inserts.
pub(super) fn inserted(plan: &WritePlan, attribution: &Attribution) -> WriteOutcome {
    let mut outcome = WriteOutcome {
        execution: Some(execution_of(&attribution.target)),
        tables: plan.tables.iter().map(TableOutcome::inserted).collect(),
        ..WriteOutcome::default()
    };
    outcome.set_refs(plan);
    outcome
}

/// Applies table steps and gathers their ledger entries.
struct StepWriter<'w> {
    connection: &'w mut AsyncPgConnection,
    context: &'w WriteContext<'w>,
    return_rows: bool,
    entries: Vec<LedgerEntry>,
}

impl StepWriter<'_> {
    /// Applies a step after those that are `done`. `is_inserted` tells that its rows were inserted
    /// in the first round trip.
    async fn apply(
        &mut self,
        step: &TableStep,
        done: &[TableOutcome],
        is_inserted: bool,
    ) -> Result<TableOutcome, Failure> {
        let name = &step.table.name;
        if step.len == 0 {
            return Ok(TableOutcome {
                table: name.clone(),
                rows: self.return_rows.then(Vec::new),
                ..TableOutcome::default()
            });
        }
        let columns = ResolvedColumns::new(step, done);
        let mut outcome = match step.action {
            Action::Insert => {
                if !is_inserted {
                    insertion(self.context, &step.table, columns.iter())
                        .execute(self.connection)
                        .await?;
                }
                TableOutcome::inserted(step)
            }
            Action::Upsert { on_match, .. } | Action::Update { on_match, .. } => {
                let modified =
                    modify_rows(self.connection, self.context, step, on_match, columns).await?;
                self.entries.push(LedgerEntry::updated(
                    name,
                    modified.changed,
                    modified.stored,
                ));
                modified.outcome
            }
            Action::Delete { .. } => return self.delete(step, &columns).await,
        };
        if outcome.created > 0 {
            self.entries
                .push(LedgerEntry::created(name, outcome.created));
        }
        outcome.rows = self.rows(step, &outcome.ids).await?;
        Ok(outcome)
    }

    async fn delete(
        &mut self,
        step: &TableStep,
        columns: &ResolvedColumns<'_>,
    ) -> Result<TableOutcome, Failure> {
        let matches = match_rows(self.connection, self.context, step, columns).await?;
        let keys = step
            .assign_matches(matches.found)
            .map_err(Failure::Problems)?
            .keys;
        // Deleted rows are returned with their last values.
        let returned = self.rows(step, &keys).await?;
        let rows = if step.cascades() {
            close_over_references(self.connection, self.context, &step.table, &keys).await?
        } else {
            let references =
                stored_references(self.connection, self.context, &step.table.name, &keys).await?;
            step.check_references(&keys, references)
                .map_err(Failure::Problems)?;
            [(step.table.name.clone(), keys.iter().cloned().collect())].into()
        };
        let (series, stored) = delete_all(self.connection, self.context, &rows).await?;
        let entries = LedgerEntry::deleted(&rows, &series, stored);
        self.entries.extend(entries);
        Ok(TableOutcome {
            rows: returned,
            ..TableOutcome::deleted(step, keys, &rows, &series)
        })
    }

    /// Rows by their keys, if they were asked for.
    async fn rows(
        &mut self,
        step: &TableStep,
        keys: &[KeyValue],
    ) -> Result<Option<Vec<RowJson>>, Failure> {
        if !self.return_rows {
            return Ok(None);
        }
        read_rows(self.connection, self.context, &step.table, keys)
            .await
            .map(Some)
    }
}

#[derive(QueryableByName)]
struct RenderedRow {
    #[diesel(sql_type = Text)]
    rendered: String,
}

/// Rows by their keys, in that order.
async fn read_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &Arc<Table>,
    keys: &[KeyValue],
) -> Result<Vec<RowJson>, Failure> {
    let data_type = primary_key_type(table);
    let keys = key_values(keys.iter().cloned(), data_type);
    let query = statement(format!(
        "SELECT row_to_json(r)::text AS rendered FROM unnest($1::{}[]) WITH ORDINALITY AS u(k, place) \
         JOIN {} t ON t.{} = u.k CROSS JOIN LATERAL (SELECT {}) r ORDER BY u.place",
        sql_type(data_type),
        context.schemas.table(&table.name),
        primary_key(table),
        rendered_columns(table, "t"),
    ));
    let rows: Vec<RenderedRow> = bind_values(query, &keys).load(connection).await?;
    Ok(rows
        .into_iter()
        .map(|row| RowJson::from_rendered(row.rendered))
        .collect())
}

async fn apply_series(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    plan: &WritePlan,
    tables: &[TableOutcome],
) -> Result<Vec<SeriesOutcome>, Failure> {
    let parents = plan.series_parents(tables).map_err(Failure::Problems)?;
    let new_rows: HashSet<(&str, &KeyValue)> = plan
        .tables
        .iter()
        .zip(tables)
        .filter(|(step, _)| step.action == Action::Insert)
        .flat_map(|(step, done)| done.ids.iter().map(|id| (step.table.name.as_str(), id)))
        .collect();
    let ready: Vec<ReadySeries<'_>> = plan
        .series
        .iter()
        .zip(parents)
        .map(|(step, parent)| {
            let owner = step.parent_table();
            ReadySeries {
                step,
                is_new: owner.is_some_and(|owner| new_rows.contains(&(owner, &parent))),
                parent,
                columns: step
                    .columns
                    .iter()
                    .map(|column| column.resolve(tables))
                    .collect(),
            }
        })
        .collect();
    let replaced = replace_series(connection, context, &ready).await?;
    Ok(ready
        .into_iter()
        .zip(replaced)
        .map(|(series, points_replaced)| SeriesOutcome {
            table: series.step.table.name.clone(),
            parent: series.parent,
            points_written: u64::try_from(series.step.points).unwrap_or(u64::MAX),
            points_replaced,
        })
        .collect())
}
