//! Applies a plan: one transaction for rows, series, their record and their execution.

use std::pin::pin;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures::TryStreamExt;
use labdata_domain::{
    data::{
        read::RowJson,
        write::{
            Action, LedgerEntry, OutOfReach, ResolvedColumns, ReturnBudget, TableOutcome,
            TableStep, WriteOutcome, WritePlan,
        },
    },
    scalar::KeyValue,
};
use labdata_ports::data::{Attribution, WriteError};

use super::{
    context::WriteContext,
    delete::{close_over_references, delete_all, stored_references},
    execution::{KnownJobs, ensure_job},
    failure::Failure,
    first_insert::{FirstInsert, record_write},
    insert::Insertion,
    matching::match_rows,
    modify::modify_rows,
    recreated::require_later_than_deletions,
    series::write_series,
};
use crate::database::{
    names::TableNames,
    sql::{bind_values, rendered_columns, statement},
};

/// Applies a write between its beginning and its end: the caller holds the catalog lock, and
/// commits, or rolls a dry run back.
pub(super) async fn apply(
    connection: &mut AsyncPgConnection,
    context: &mut WriteContext<'_>,
    plan: &WritePlan,
    attribution: &Attribution,
    jobs: &KnownJobs,
) -> Result<WriteOutcome, Failure> {
    let has_job = jobs.suffice(context.organization, &attribution.target);
    let first = FirstInsert::of(plan, has_job);
    first.run(connection, context, plan, attribution).await?;
    if first.inserts {
        context.note_stored();
    }
    let mut outcome = WriteOutcome::default();
    let mut writer = StepWriter {
        connection,
        context: &mut *context,
        returned: plan.return_rows.then(ReturnBudget::default),
        entries: Vec::new(),
    };
    for step in &plan.tables {
        let is_inserted = first.inserts && step.index == 0;
        let applied = writer.apply(step, &outcome.tables, is_inserted).await?;
        outcome.tables.push(applied);
    }
    let mut entries = writer.entries;
    outcome.series = write_series(connection, context, plan, &outcome.tables).await?;
    entries.extend(LedgerEntry::of_series(&outcome.series));
    // Deferred checks run at a commit, which a dry run does not reach.
    if plan.dry_run {
        connection
            .batch_execute("SET CONSTRAINTS ALL IMMEDIATE")
            .await?;
    } else {
        outcome.execution = Some(context.execution);
        // Otherwise the first round trip has recorded the write already.
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

/// Applies table steps and gathers their ledger entries.
struct StepWriter<'w, 'c> {
    connection: &'w mut AsyncPgConnection,
    context: &'w mut WriteContext<'c>,
    /// Present if the written rows are returned.
    returned: Option<ReturnBudget>,
    entries: Vec<LedgerEntry>,
}

impl StepWriter<'_, '_> {
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
                rows: self.returned.as_ref().map(|_| Vec::new()),
                ..TableOutcome::default()
            });
        }
        let columns = ResolvedColumns::new(step, done).map_err(Failure::Problems)?;
        let mut outcome = match &step.action {
            Action::Insert { keys, .. } => {
                if !is_inserted {
                    let others = columns.iter().map(|given| (given.column(), &*given.values));
                    let table = self.context.names(&step.table).name;
                    Insertion::of(step.table.key(), keys, others)
                        .run(self.connection, self.context, &table, false)
                        .await?;
                    require_later_than_deletions(self.connection, self.context, step).await?;
                }
                TableOutcome::inserted(step, keys)
            }
            Action::Upsert { on_match, .. } | Action::Update { on_match } => {
                let modified =
                    modify_rows(self.connection, self.context, step, *on_match, columns).await?;
                self.entries.push(LedgerEntry::updated(
                    name,
                    modified.changed,
                    modified.stored,
                ));
                modified.outcome
            }
            Action::Delete { .. } => return self.delete(step, &columns).await,
        };
        self.context.note_stored();
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
        let matches = match_rows(self.connection, self.context, step, columns, None).await?;
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
            let tables = references.iter().map(|reference| &*reference.table);
            // Before the references themselves, which name their tables.
            OutOfReach::check(self.context.rights, tables).map_err(WriteError::from)?;
            step.check_references(&keys, references)
                .map_err(Failure::Problems)?;
            [(step.table.clone(), keys.iter().cloned().collect())].into()
        };
        let (series, stored) = delete_all(self.connection, self.context, &rows).await?;
        self.context.note_stored();
        // Points are found by deleting them; a refusal rolls back.
        let WriteContext {
            rights, catalog, ..
        } = &*self.context;
        OutOfReach::check_deleted(rights, catalog, &rows, &series).map_err(WriteError::from)?;
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
        let Some(budget) = &mut self.returned else {
            return Ok(None);
        };
        let names = self.context.names(&step.table);
        read_rows(self.connection, &names, keys, budget)
            .await
            .map(Some)
    }
}

#[derive(QueryableByName)]
struct RenderedRow {
    /// Null if it is longer than the budget.
    #[diesel(sql_type = Nullable<Text>)]
    rendered: Option<String>,
}

/// Rows by their keys, in that order. The first one over the budget ends it.
async fn read_rows(
    connection: &mut AsyncPgConnection,
    names: &TableNames<'_>,
    keys: &[KeyValue],
    budget: &mut ReturnBudget,
) -> Result<Vec<RowJson>, Failure> {
    let values = names.key_values(keys);
    let longest = i64::try_from(budget.left()).unwrap_or(i64::MAX);
    let query = statement(format!(
        // Numbered, because a join does not retain the order of the keys. A row over the budget stays in
        // the database: the client library would hold all of it.
        "SELECT CASE WHEN octet_length(j.rendered) <= $2 THEN j.rendered END AS rendered \
         FROM unnest($1::{key_type}[]) WITH ORDINALITY AS u(k, place) \
         JOIN {table} t ON t.{key} = u.k CROSS JOIN LATERAL (SELECT {columns}) r \
         CROSS JOIN LATERAL (SELECT row_to_json(r.*)::text AS rendered) j ORDER BY u.place",
        key_type = names.key_type,
        table = names.name,
        key = names.key,
        columns = rendered_columns(names.table, "t"),
    ));
    let query = bind_values(query, &values).bind::<BigInt, _>(longest);
    // Streamed, because rows of any number and length are read until they are too many.
    let mut stream = pin!(query.load_stream::<RenderedRow>(connection).await?);
    let mut rows = Vec::with_capacity(keys.len());
    while let Some(RenderedRow { rendered }) = stream.try_next().await? {
        let taken = budget.take(rendered.as_ref().map(String::len));
        taken.map_err(Failure::Problems)?;
        rows.extend(rendered.map(RowJson::from_rendered));
    }
    Ok(rows)
}
