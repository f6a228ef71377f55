//! Reverts that restore. The stored values stay in PostgreSQL: rows are created and changed from recorded
//! changes by statements, one for each table and kind.

mod marks;
mod obstacles;
mod touched;
mod work;

use std::sync::Arc;

use diesel::{
    QueryableByName,
    sql_types::{Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{ColumnRef, KeyedTable, Table},
    data::{
        restore::{RestoreFacts, RestorePlan},
        revert::RevertReport,
        write::{LedgerEntry, OutOfReach},
    },
    events::LoggedEventKind,
    ids::ExecutionId,
    scalar::{DataType, Values},
};
use labdata_ports::data::{Restore, RevertError, RevertRequest};

use self::{marks::mark_undone, obstacles::obstacles, touched::touched, work::Work};
use super::{
    changes::{mark_reverts, record_revert},
    context::WriteContext,
    deletions::recorded_deletions,
    execution::{NewExecution, create_execution, ensure_job},
    failure::Failure,
    ledger::{self, entries_of_series, in_trash, take_for_revert},
    revert::{RevertFailure, lock_execution},
};
use crate::{
    database::{
        names::column_name,
        sql::{key_from_text, key_values, literal},
    },
    events::record::record,
    instruments::images::delete_of_execution,
};

#[derive(QueryableByName)]
struct NameRow {
    #[diesel(sql_type = Text)]
    table_name: String,
}

#[derive(QueryableByName)]
struct KeyRow {
    #[diesel(sql_type = Text)]
    key: String,
}

/// Selects the recorded changes; its parameters are the execution and their numbers.
const SELECTED: &str = "c.execution_id = $1 AND c.id = ANY($2::bigint[])";

/// Stored rows of a table, or chunks of a raw one.
struct Source<'c> {
    table: &'c Arc<Table>,
    keyed: Option<KeyedTable>,
    /// Qualified and quoted name.
    name: String,
    /// Quoted name of the key.
    key: String,
    data_type: DataType,
    /// Name of the column of the execution that created the row.
    creator: &'static str,
    /// Name of the column of the execution that changed it last.
    updater: &'static str,
    /// Name of the column of its last change.
    changed_at: &'static str,
}

impl<'c> Source<'c> {
    fn of(context: &WriteContext<'c>, name: &str) -> Option<Self> {
        let table = context.catalog.table(name)?;
        let keyed = KeyedTable::of(table);
        Some(match &keyed {
            Some(keyed) => Self {
                name: context.schemas.table(name),
                key: column_name(keyed.key()),
                data_type: keyed.key().data_type,
                creator: "created_by_execution_id",
                updater: "updated_by_execution_id",
                changed_at: "updated_at",
                table,
                keyed: Some(keyed.clone()),
            },
            None => Self {
                name: context.schemas.chunk_table(name),
                key: "_chunk".to_owned(),
                data_type: DataType::Integer,
                creator: "_execution",
                updater: "_execution",
                changed_at: "_written_at",
                table,
                keyed,
            },
        })
    }

    /// An expression of the parent's key of a chunk of that alias; null of rows.
    fn parent(&self, alias: &str) -> String {
        let references = self.references();
        let keys = references.map(|column| format!("{alias}.{}::text", column_name(column)));
        Self::first(keys)
    }

    /// The same of a recorded change of that alias.
    fn former_parent(&self, alias: &str) -> String {
        let references = self.references();
        let keys =
            references.map(|column| format!("{alias}.before ->> {}", literal(&column.sql_name())));
        // Of several references, the recorded one owns the series.
        Self::first(std::iter::once(format!("{alias}.before ->> {alias}.owner_column")).chain(keys))
    }

    fn references(&self) -> impl Iterator<Item = &ColumnRef> {
        let references = self.table.references().map(|(column, _)| column);
        references.filter(|_| self.keyed.is_none())
    }

    fn first(keys: impl Iterator<Item = String>) -> String {
        let keys: Vec<String> = keys
            .chain(std::iter::once("NULL::text".to_owned()))
            .collect();
        format!("coalesce({})", keys.join(", "))
    }

    fn keys<'i>(&self, ids: impl IntoIterator<Item = &'i String>) -> Values {
        let keys = ids.into_iter();
        let keys: Vec<_> = keys
            .map(|id| key_from_text(id.clone(), self.data_type))
            .collect();
        key_values(keys, self.data_type)
    }
}

/// Makes rows and series what they were before `context.execution`. The caller commits.
pub(super) async fn restore(
    connection: &mut AsyncPgConnection,
    context: &mut WriteContext<'_>,
    request: &RevertRequest,
    given: &Restore,
) -> Result<RevertReport, RevertFailure> {
    lock_execution(connection, context).await?;
    let ledger = take_for_revert(connection, context).await?;
    let in_trash = in_trash(connection, context).await?;
    let deletions = recorded_deletions(connection, context, &ledger).await?;
    let sources = sources(connection, context).await?;
    let mut rows = Vec::new();
    for source in &sources {
        let (touched, latest) = touched(connection, context, source).await?;
        rows.extend(touched);
        // Locked from here on: what the revert does is later than all that it undoes.
        context.later_than(latest)?;
    }
    let series = entries_of_series(connection, context).await?;
    let mut plan = RestorePlan::new(rows, &series);
    loop {
        // A row that is left may itself stand in the way of another, such as by its reference to a row that was to be
        // deleted: the search ends with a round that finds nothing.
        let obstacles = obstacles(connection, context, &sources, &plan).await?;
        if !plan.leave(obstacles) {
            break;
        }
    }
    plan.check(given.on_conflict)
        .map_err(|conflicts| RevertFailure::Refused(RevertError::Conflicts(conflicts)))?;
    let annotations =
        delete_of_execution(connection, context.organization, context.execution).await?;
    let is_new = !ledger.is_empty() || !plan.tables().is_empty() || annotations > 0;
    let facts = RestoreFacts {
        ledger,
        annotations,
        in_trash,
        deletions,
        ..RestoreFacts::default()
    };
    let mut work = Work {
        connection,
        context: &mut *context,
        plan: &plan,
        facts,
        entries: Vec::new(),
    };
    work.run(&sources).await?;
    let Work {
        mut facts, entries, ..
    } = work;
    // Series that were written since the obstacles were looked for.
    let raw = facts.series.iter().filter(|(_, series)| series.points > 0);
    let raw = raw.filter_map(|(name, _)| context.catalog.table(name));
    OutOfReach::check(context.rights, raw.map(|table| &**table))
        .map_err(|refusal| RevertFailure::Refused(refusal.into()))?;
    if !plan.tables().is_empty() && !request.dry_run {
        facts.undo_execution = Some(record_undo(connection, context, given, &entries).await?);
    }
    mark_undone(connection, context, &plan).await?;
    // Partly undone, a revert holds.
    if plan.left().next().is_none() && facts.in_trash.is_empty() {
        mark_reverts(connection, context.organization, context.execution).await?;
    }
    if is_new {
        let reverted = LoggedEventKind::ExecutionReverted(context.execution);
        record(connection, context.organization, context.now, &[reverted]).await?;
    }
    // What is left in the trash is for another revert.
    if facts.in_trash.is_empty() {
        // Annotations do not come back with the undo.
        let undo = facts.undo_execution.filter(|_| facts.annotations == 0);
        record_revert(connection, context.organization, request, undo).await?;
    }
    Ok(plan.report(&facts))
}

/// The tables that the execution changed and that still exist.
async fn sources<'c>(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'c>,
) -> Result<Vec<Source<'c>>, Failure> {
    let names: Vec<NameRow> = diesel::sql_query(
        "SELECT table_name FROM labdata.row_change WHERE execution_id = $1 AND organization_id = $2 AND NOT is_undone \
         UNION SELECT table_name FROM labdata.write_ledger \
         WHERE execution_id = $1 AND organization_id = $2 AND trash_number IS NULL ORDER BY 1",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .load(connection)
    .await?;
    let names = names.into_iter();
    Ok(names
        .filter_map(|row| Source::of(context, &row.table_name))
        // New points stay where earlier ones are not stored: without them nothing would be left.
        .filter(|source| source.table.history || !source.table.is_raw())
        .collect())
}

/// Records the revert's own changes under its execution, which is created.
async fn record_undo(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    given: &Restore,
    entries: &[LedgerEntry],
) -> Result<ExecutionId, Failure> {
    let target = &given.undo.target;
    let own = WriteContext {
        organization: context.organization,
        schemas: context.schemas.clone(),
        catalog: context.catalog,
        execution: target.execution(),
        rights: context.rights,
        author: context.author,
        now: context.now,
        stored: None,
    };
    ensure_job(connection, &own, target).await?;
    let new = NewExecution::of(&given.undo);
    create_execution(connection, context.organization, new.as_ref()).await?;
    ledger::record(connection, &own, entries).await?;
    Ok(own.execution)
}
