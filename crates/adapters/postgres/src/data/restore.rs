//! Reverts that restore. The stored values stay in PostgreSQL: rows are created and changed from recorded
//! changes by statements, one for each table and kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{KeyedTable, Table},
    data::{
        history::ChangeAction,
        restore::{Obstacle, Reason, RestoreFacts, RestorePlan, Touched},
        revert::RevertReport,
        write::{LedgerEntry, RowKeys},
    },
    events::LoggedEventKind,
    ids::ExecutionId,
    scalar::{DataType, Values},
};
use labdata_ports::data::{Restore, RevertError, RevertRequest};
use uuid::Uuid;

use super::{
    changes::record_revert,
    context::WriteContext,
    delete::delete_all,
    execution::{NewExecution, create_execution, ensure_job},
    failure::Failure,
    ledger::{self, take_for_revert},
    revert::{RevertFailure, lock_execution},
};
use crate::{
    database::{
        names::column_name,
        sql::{
            Statement, bind_values, ident, key_from_text, key_values, literal, sql_type, statement,
        },
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
struct ChangedRow {
    #[diesel(sql_type = Text)]
    row_id: String,
    /// The execution's first change.
    #[diesel(sql_type = BigInt)]
    first: i64,
    #[diesel(sql_type = Text)]
    last_action: String,
    #[diesel(sql_type = Bool)]
    was_absent: bool,
    /// True if the execution had created the row before.
    #[diesel(sql_type = Bool)]
    was_own: bool,
}

#[derive(QueryableByName)]
struct CurrentRow {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Bool)]
    own: bool,
}

#[derive(QueryableByName)]
struct KeyRow {
    #[diesel(sql_type = Text)]
    key: String,
}

#[derive(QueryableByName)]
struct ExecutionRow {
    #[diesel(sql_type = SqlUuid)]
    execution_id: Uuid,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

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
                table,
                keyed: Some(keyed.clone()),
            },
            None => Self {
                name: context.schemas.chunk_table(name),
                key: "_chunk".to_owned(),
                data_type: DataType::Integer,
                creator: "_execution",
                table,
                keyed,
            },
        })
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
    context: &WriteContext<'_>,
    request: &RevertRequest,
    given: &Restore,
) -> Result<RevertReport, RevertFailure> {
    lock_execution(connection, context).await?;
    let ledger = take_for_revert(connection, context).await?;
    let sources = sources(connection, context).await?;
    let mut rows = Vec::new();
    for source in &sources {
        rows.extend(touched(connection, context, source).await?);
    }
    let mut plan = RestorePlan::new(rows);
    loop {
        let obstacles = obstacles(connection, context, &sources, &plan).await?;
        if !plan.leave(obstacles) {
            break;
        }
    }
    plan.check(given.on_conflict)
        .map_err(|conflicts| RevertFailure::Refused(RevertError::Conflicts(conflicts)))?;
    let tables = context.catalog.tables().iter();
    let without_history = tables.filter(|table| !table.history);
    let annotations =
        delete_of_execution(connection, context.organization, context.execution).await?;
    let is_new = !ledger.is_empty() || !plan.tables().is_empty() || annotations > 0;
    let facts = RestoreFacts {
        ledger,
        annotations,
        without_history: without_history.map(|table| table.name.clone()).collect(),
        ..RestoreFacts::default()
    };
    let mut work = Work {
        connection,
        context,
        plan: &plan,
        facts,
        entries: Vec::new(),
    };
    work.run(&sources).await?;
    let Work {
        mut facts, entries, ..
    } = work;
    if !plan.tables().is_empty() && !request.dry_run {
        facts.undo_execution = Some(record_undo(connection, context, given, &entries).await?);
    }
    mark_undone(connection, context, &plan).await?;
    if is_new {
        let reverted = LoggedEventKind::ExecutionReverted(context.execution);
        record(connection, context.organization, context.now, &[reverted]).await?;
    }
    record_revert(connection, context.organization, request).await?;
    Ok(plan.report(&facts))
}

/// The tables that the execution changed and that still exist.
async fn sources<'c>(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'c>,
) -> Result<Vec<Source<'c>>, Failure> {
    let names: Vec<NameRow> = diesel::sql_query(
        "SELECT table_name FROM labdata.row_change WHERE execution_id = $1 AND organization_id = $2 AND NOT is_undone \
         UNION SELECT table_name FROM labdata.write_ledger WHERE execution_id = $1 AND organization_id = $2 ORDER BY 1",
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

/// The rows of a table that the execution changed, those that exist locked.
async fn touched(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
) -> Result<Vec<Touched>, Failure> {
    let changed = changed_rows(connection, context, source).await?;
    let changed: BTreeMap<String, ChangedRow> = changed
        .into_iter()
        .map(|row| (row.row_id.clone(), row))
        .collect();
    let current: BTreeMap<String, bool> = current_rows(connection, context, source, changed.keys())
        .await?
        .into_iter()
        .map(|row| (row.key, row.own))
        .collect();
    let ids: BTreeSet<&String> = changed.keys().chain(current.keys()).collect();
    // 0 for rows that the execution created: what others changed before its first update counts, too.
    let first = |id: &String| {
        let row = changed.get(id).filter(|row| !row.was_own);
        row.map_or(0, |row| row.first)
    };
    let firsts = ids.iter().map(|id| first(id)).collect();
    let since = changed_since(connection, context, source, &ids, firsts).await?;
    let rows = ids.into_iter().map(|id| {
        let change = changed.get(id);
        let was_created = change.is_none_or(|row| row.was_own);
        let is_own = current.get(id) == Some(&true);
        let exists = current.contains_key(id) && (is_own || !was_created);
        let deleted = change.is_some_and(|row| row.last_action == ChangeAction::Deleted.as_str());
        Touched {
            table: source.table.clone(),
            id: id.clone(),
            before: change
                .filter(|row| !row.was_own && !row.was_absent)
                .map(|row| row.first),
            exists,
            deleted,
            changed_since: since.contains(id) || (deleted && exists && !is_own),
        }
    });
    Ok(rows.collect())
}

async fn changed_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
) -> Result<Vec<ChangedRow>, Failure> {
    let rows = diesel::sql_query(
        "SELECT f.row_id, f.first, f.last_action, c.before IS NULL AS was_absent, \
         coalesce((c.before ->> $4)::uuid = $1, false) AS was_own \
         FROM (SELECT row_id, min(id) AS first, (array_agg(action ORDER BY id DESC))[1] AS last_action \
               FROM labdata.row_change WHERE execution_id = $1 AND organization_id = $2 AND table_name = $3 \
               AND NOT is_undone GROUP BY row_id) f \
         JOIN labdata.row_change c ON c.organization_id = $2 AND c.table_name = $3 AND c.row_id = f.row_id AND c.id = f.first",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(&source.table.name)
    .bind::<Text, _>(source.creator)
    .load(connection)
    .await?;
    Ok(rows)
}

/// The rows that the execution created, and those of these keys, locked.
async fn current_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
    ids: impl IntoIterator<Item = &String>,
) -> Result<Vec<CurrentRow>, Failure> {
    let keys = source.keys(ids);
    let query = statement(format!(
        "SELECT t.{key}::text AS key, t.{creator} IS NOT DISTINCT FROM $1 AS own FROM {name} t \
         WHERE t.{creator} = $1 OR t.{key} = ANY($2::{data_type}[]) ORDER BY t.{key} FOR UPDATE",
        key = source.key,
        creator = source.creator,
        name = source.name,
        data_type = sql_type(source.data_type),
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid());
    Ok(bind_values(query, &keys).load(connection).await?)
}

/// The rows that another execution changed after those changes. Reverts and what they undid do not count:
/// together they changed nothing.
async fn changed_since(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    source: &Source<'_>,
    ids: &BTreeSet<&String>,
    firsts: Vec<i64>,
) -> Result<BTreeSet<String>, Failure> {
    let rows: Vec<KeyRow> = diesel::sql_query(
        "SELECT DISTINCT o.row_id AS key FROM unnest($4::text[], $5::bigint[]) AS u(id, first) \
         JOIN labdata.row_change o ON o.organization_id = $2 AND o.table_name = $3 AND o.row_id = u.id AND o.id > u.first \
         WHERE o.execution_id IS DISTINCT FROM $1 AND NOT o.is_undone AND NOT o.is_undo \
         AND (u.first > 0 OR (o.before ->> $6)::uuid = $1)",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(&source.table.name)
    .bind::<Array<Text>, _>(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>())
    .bind::<Array<BigInt>, _>(firsts)
    .bind::<Text, _>(source.creator)
    .load(connection)
    .await?;
    Ok(rows.into_iter().map(|row| row.key).collect())
}

async fn obstacles(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    sources: &[Source<'_>],
    plan: &RestorePlan,
) -> Result<Vec<Obstacle>, Failure> {
    let mut found = Vec::new();
    for source in sources {
        let mut add = |reason, rows: Vec<KeyRow>| {
            found.extend(rows.into_iter().map(|row| Obstacle {
                table: source.table.name.clone(),
                id: row.key,
                reason,
            }));
        };
        if let Some(keyed) = &source.keyed {
            let referenced = referenced(connection, context, keyed, source, plan).await?;
            add(Reason::Referenced, referenced);
        }
        let mut values = plan.values(&source.table.name, true);
        values.extend(plan.values(&source.table.name, false));
        if values.is_empty() {
            continue;
        }
        let values = Returning { source, values };
        add(
            Reason::ReferenceMissing,
            values.without_targets(connection, context, plan).await?,
        );
        if source.keyed.is_some() {
            add(
                Reason::ValueTaken,
                values.taken(connection, context, plan).await?,
            );
        } else {
            add(
                Reason::SeriesReplaced,
                values.replaced(connection, context, plan).await?,
            );
        }
    }
    Ok(found)
}

/// Rows to delete that rows reference that stay as they are.
async fn referenced(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &KeyedTable,
    source: &Source<'_>,
    plan: &RestorePlan,
) -> Result<Vec<KeyRow>, Failure> {
    let keys = source.keys(&plan.deleted(&table.name));
    let mut found = Vec::new();
    if keys.is_empty() {
        return Ok(found);
    }
    for (other, column) in context.catalog.row_references(&table.name) {
        let names = context.names(&other);
        let planned: Vec<&str> = plan.of(&other.name).map(|(id, _)| id).collect();
        let query = statement(format!(
            "SELECT DISTINCT t.{column}::text AS key FROM {name} t \
             WHERE t.{column} = ANY($1::{data_type}[]) AND {other}",
            column = column_name(column),
            name = names.name,
            data_type = sql_type(column.data_type),
            other = none_of("$2", &format!("t.{}", names.key)),
        ));
        let query = bind_values(query, &keys).bind::<Array<Text>, _>(planned);
        found.extend(query.load::<KeyRow>(connection).await?);
    }
    Ok(found)
}

/// The condition that a key is none of a parameter's. As a join: PostgreSQL compares each key with each element of an
/// array that is no constant of the plan.
fn none_of(parameter: &str, key: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM unnest({parameter}::text[]) AS n(id) WHERE n.id = {key}::text)"
    )
}

/// Stored values of rows or chunks that are to return.
struct Returning<'s, 'c> {
    source: &'s Source<'c>,
    /// Numbers of the recorded changes before which they were stored.
    values: Vec<i64>,
}

/// Selects the recorded changes; its parameters are the execution and their numbers.
const SELECTED: &str = "c.execution_id = $1 AND c.id = ANY($2::bigint[])";

impl Returning<'_, '_> {
    fn bind<'f>(&'f self, text: String, context: &WriteContext<'_>) -> Statement<'f> {
        statement(text)
            .bind::<SqlUuid, _>(context.execution.as_uuid())
            .bind::<Array<BigInt>, _>(&self.values)
    }

    /// Those whose references would point at no row, or at another one than then.
    async fn without_targets(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let mut found = Vec::new();
        for (column, target) in self.source.table.references() {
            let Some(other) = Source::of(context, target) else {
                continue;
            };
            let text = format!(
                "SELECT c.row_id AS key FROM labdata.row_change c \
                 CROSS JOIN LATERAL (SELECT (c.before ->> {column})::{data_type} AS target) s \
                 LEFT JOIN {name} x ON x.{key} = s.target WHERE {SELECTED} AND s.target IS NOT NULL \
                 AND ((x.{key} IS NULL OR s.target::text = ANY($3)) AND s.target::text <> ALL($4) OR s.target::text = ANY($5))",
                column = literal(&column.sql_name()),
                data_type = sql_type(column.data_type),
                name = other.name,
                key = other.key,
            );
            let query = self
                .bind(text, context)
                .bind::<Array<Text>, _>(plan.deleted(target))
                .bind::<Array<Text>, _>(plan.restored(target))
                .bind::<Array<Text>, _>(plan.lost(target));
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }

    /// Rows with values that must be unique and that a row has that stays as it is.
    async fn taken(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let Source {
            table, name, key, ..
        } = self.source;
        let alone = table.columns.iter();
        let alone = alone.filter(|column| column.is_unique && !column.is_primary_key);
        let alone = alone.map(|column| vec![column.name.clone()]);
        let planned: Vec<&str> = plan.of(&table.name).map(|(id, _)| id).collect();
        let mut found = Vec::new();
        for group in alone.chain(table.unique_together.iter().cloned()) {
            let columns = group.iter().filter_map(|name| table.column(name));
            let equal: Vec<String> = columns
                .map(|column| format!("x.{name} = s.{name}", name = column_name(column)))
                .collect();
            let text = format!(
                "SELECT DISTINCT c.row_id AS key FROM labdata.row_change c \
                 CROSS JOIN LATERAL json_populate_record(NULL::{name}, c.before) s JOIN {name} x ON {equal} \
                 WHERE {SELECTED} AND {other}",
                equal = equal.join(" AND "),
                other = none_of("$3", &format!("x.{key}")),
            );
            let query = self.bind(text, context).bind::<Array<Text>, _>(&planned);
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }

    /// Chunks of series in whose place other points are.
    async fn replaced(
        &self,
        connection: &mut AsyncPgConnection,
        context: &WriteContext<'_>,
        plan: &RestorePlan,
    ) -> Result<Vec<KeyRow>, Failure> {
        let Source { table, name, .. } = self.source;
        let references: Vec<_> = table.references().collect();
        let mut found = Vec::new();
        for (column, _) in &references {
            let sql_name = literal(&column.sql_name());
            // Of a series that was deleted with its parent the reference is not recorded.
            let only = if references.len() == 1 {
                " OR c.owner_column IS NULL"
            } else {
                ""
            };
            let text = format!(
                "SELECT DISTINCT c.row_id AS key FROM labdata.row_change c \
                 JOIN {name} x ON x.{column} = (c.before ->> {sql_name})::{data_type} \
                 WHERE {SELECTED} AND (c.owner_column = {sql_name}{only}) AND {other}",
                other = none_of("$3", "x._chunk"),
                column = column_name(column),
                data_type = sql_type(column.data_type),
            );
            let query = self
                .bind(text, context)
                .bind::<Array<Text>, _>(plan.deleted(&table.name));
            found.extend(query.load::<KeyRow>(connection).await?);
        }
        Ok(found)
    }
}

/// The changes of a plan.
struct Work<'w, 'c> {
    connection: &'w mut AsyncPgConnection,
    context: &'w WriteContext<'c>,
    plan: &'w RestorePlan,
    facts: RestoreFacts,
    entries: Vec<LedgerEntry>,
}

impl Work<'_, '_> {
    async fn run(&mut self, sources: &[Source<'_>]) -> Result<(), Failure> {
        // Values that must be unique, and references between rows, are checked once all rows are restored.
        self.connection
            .batch_execute("SET CONSTRAINTS ALL DEFERRED")
            .await?;
        for source in sources.iter().filter(|source| source.keyed.is_some()) {
            self.restore_rows(source).await?;
        }
        // Before the rows, with which only series of others are deleted then.
        for source in sources.iter().filter(|source| source.keyed.is_none()) {
            self.delete_chunks(source).await?;
        }
        self.delete_rows(sources).await?;
        for source in sources.iter().filter(|source| source.keyed.is_none()) {
            self.restore_chunks(source).await?;
        }
        Ok(())
    }

    /// Gives rows their earlier values, and creates deleted ones with them.
    async fn restore_rows(&mut self, source: &Source<'_>) -> Result<(), Failure> {
        let Source {
            table, name, key, ..
        } = source;
        let own = table.columns.iter().map(|column| column_name(column));
        let system = table.system_columns().iter();
        let columns: Vec<String> = own.chain(system.map(|it| ident(it.name))).collect();
        let from = format!(
            "labdata.row_change c CROSS JOIN LATERAL json_populate_record(NULL::{name}, c.before) s"
        );
        let recording = self.context.recording(table);
        let mut ids = Vec::new();
        for deleted in [false, true] {
            let values = self.plan.values(&table.name, deleted);
            if values.is_empty() {
                continue;
            }
            let given = columns.iter().map(|column| format!("s.{column}"));
            let given = given.collect::<Vec<_>>().join(", ");
            let names = columns.join(", ");
            let change = if deleted {
                format!(
                    "INSERT INTO {name} ({names}) SELECT {given} FROM {from} WHERE {SELECTED} \
                     RETURNING {key}::text AS key, $3 AS at, NULL::json AS before"
                )
            } else {
                format!(
                    "UPDATE {name} t SET ({names}) = ROW({given}) FROM {from} JOIN {name} old ON old.{key} = s.{key} \
                     WHERE {SELECTED} AND t.{key} = s.{key} RETURNING t.{key}::text AS key, \
                     greatest($3, old.updated_at + interval '1 microsecond') AS at, {} AS before",
                    recording.row("old")
                )
            };
            let query = statement(format!(
                "WITH changed AS ({change}){recorded} SELECT key FROM changed",
                recorded = recording.part(ChangeAction::Restored, "changed", 3),
            ))
            .bind::<SqlUuid, _>(self.context.execution.as_uuid())
            .bind::<Array<BigInt>, _>(values)
            .bind::<Timestamptz, _>(self.context.now);
            let rows: Vec<KeyRow> = recording.bind(query).load(self.connection).await?;
            ids.extend(rows.into_iter().map(|row| row.key));
        }
        self.facts.restored += u64::try_from(ids.len()).unwrap_or(u64::MAX);
        self.entries
            .push(LedgerEntry::updated(&table.name, ids, Vec::new()));
        Ok(())
    }

    async fn delete_rows(&mut self, sources: &[Source<'_>]) -> Result<(), Failure> {
        let mut rows = RowKeys::new();
        for source in sources {
            let Some(keyed) = &source.keyed else { continue };
            let keys = self.plan.deleted(&source.table.name).into_iter();
            let keys: BTreeSet<_> = keys.map(|id| key_from_text(id, source.data_type)).collect();
            if !keys.is_empty() {
                rows.insert(keyed.clone(), keys);
            }
        }
        let (series, stored) = delete_all(self.connection, self.context, &rows).await?;
        let count = rows.values().map(BTreeSet::len).sum::<usize>();
        self.facts.deleted = u64::try_from(count).unwrap_or(u64::MAX);
        self.entries
            .extend(LedgerEntry::deleted(&rows, &series, stored));
        self.facts.series = series;
        Ok(())
    }

    /// Deletes chunks that the execution wrote.
    async fn delete_chunks(&mut self, source: &Source<'_>) -> Result<(), Failure> {
        let ids = self.plan.deleted(&source.table.name);
        if ids.is_empty() {
            return Ok(());
        }
        let recording = self.context.recording(source.table);
        let query = statement(format!(
            "WITH changed AS (DELETE FROM {name} c WHERE c._chunk = ANY($1::bigint[]) \
             RETURNING c._chunk::text AS key, c._points AS points, $2 AS at, {before} AS before){recorded} \
             SELECT coalesce(sum(points), 0)::bigint AS count FROM changed",
            name = source.name,
            before = recording.row("c"),
            recorded = recording.part(ChangeAction::Deleted, "changed", 2),
        ));
        let keys = source.keys(&ids);
        let query = bind_values(query, &keys).bind::<Timestamptz, _>(self.context.now);
        let deleted: CountRow = recording.bind(query).get_result(self.connection).await?;
        let points = u64::try_from(deleted.count).unwrap_or_default();
        self.facts.points_deleted += points;
        self.entries
            .push(LedgerEntry::points_deleted(&source.table.name, points));
        Ok(())
    }

    async fn restore_chunks(&mut self, source: &Source<'_>) -> Result<(), Failure> {
        let values = self.plan.values(&source.table.name, true);
        if values.is_empty() {
            return Ok(());
        }
        let recording = self.context.recording(source.table);
        let query = statement(format!(
            "WITH changed AS (INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT s.* FROM labdata.row_change c \
             CROSS JOIN LATERAL json_populate_record(NULL::{name}, c.before) s WHERE {SELECTED} \
             RETURNING _chunk::text AS key, _points AS points, $3 AS at, NULL::json AS before){recorded} \
             SELECT coalesce(sum(points), 0)::bigint AS count FROM changed",
            name = source.name,
            recorded = recording.part(ChangeAction::Restored, "changed", 3),
        ))
        .bind::<SqlUuid, _>(self.context.execution.as_uuid())
        .bind::<Array<BigInt>, _>(values)
        .bind::<Timestamptz, _>(self.context.now);
        let created: CountRow = recording.bind(query).get_result(self.connection).await?;
        let points = u64::try_from(created.count).unwrap_or_default();
        self.facts.points_restored += points;
        self.entries
            .push(LedgerEntry::points_restored(&source.table.name, points));
        Ok(())
    }
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
        author: context.author,
        now: context.now,
    };
    ensure_job(connection, &own, target).await?;
    let new = NewExecution::of(&given.undo);
    create_execution(connection, context.organization, new.as_ref()).await?;
    ledger::record(connection, &own, entries).await?;
    Ok(own.execution)
}

/// Marks the execution's changes as undone. Those that they had undone are valid again, and so on.
async fn mark_undone(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    plan: &RestorePlan,
) -> Result<(), Failure> {
    const NOT_LEFT: &str = "NOT EXISTS (SELECT FROM unnest($3::text[], $4::text[]) AS l(name, id) \
         WHERE l.name = table_name AND l.id = row_id)";
    let (tables, ids): (Vec<&str>, Vec<&str>) = plan.left().unzip();
    statement(format!(
        "UPDATE labdata.row_change SET undone_by = $5, is_undone = true \
         WHERE execution_id = $1 AND organization_id = $2 AND NOT is_undone AND {NOT_LEFT}"
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Array<Text>, _>(&tables)
    .bind::<Array<Text>, _>(&ids)
    .bind::<Nullable<SqlUuid>, _>(context.author.execution.map(ExecutionId::as_uuid))
    .execute(connection)
    .await?;
    let (mut executions, mut is_undone) = (vec![context.execution.as_uuid()], false);
    while !executions.is_empty() {
        let marked: Vec<ExecutionRow> = statement(format!(
            "WITH marked AS (UPDATE labdata.row_change SET is_undone = $5 \
             WHERE undone_by = ANY($1) AND organization_id = $2 AND is_undone <> $5 AND {NOT_LEFT} \
             RETURNING execution_id) SELECT DISTINCT execution_id FROM marked"
        ))
        .bind::<Array<SqlUuid>, _>(executions)
        .bind::<SqlUuid, _>(context.organization.as_uuid())
        .bind::<Array<Text>, _>(&tables)
        .bind::<Array<Text>, _>(&ids)
        .bind::<Bool, _>(is_undone)
        .load(connection)
        .await?;
        executions = marked.into_iter().map(|row| row.execution_id).collect();
        is_undone = !is_undone;
    }
    Ok(())
}
