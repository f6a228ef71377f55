//! Reverts: undoing the writes of an execution.

use std::collections::{BTreeMap, BTreeSet};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::{
        revert::{Blocker, RevertFacts, RevertReport},
        write::{OutOfReach, RowKeys},
    },
    events::LoggedEventKind,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    data::{RevertError, RevertRequest},
};

use super::{
    changes::record_revert,
    context::WriteContext,
    delete::delete_all,
    deletions::recorded_deletions,
    failure::Failure,
    ledger::{in_trash, tables_of_created, take_for_revert},
};
use crate::{
    database::{
        errors::Transient,
        names::{TableNames, column_name},
        sql::{bind_values, key_values, sql_type, statement},
    },
    events::record::record,
    instruments::images::delete_of_execution,
};

/// Failure of a revert.
#[derive(Debug)]
pub(super) enum RevertFailure {
    Refused(RevertError),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for RevertFailure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl From<RevertFailure> for RevertError {
    fn from(failure: RevertFailure) -> Self {
        match failure {
            RevertFailure::Refused(error) => error,
            // What obstacles do not foresee, such as a limit of an index, refuses in words, too.
            RevertFailure::Failed(Failure::Problems(problems) | Failure::Contended(problems)) => {
                let problems = problems.into_iter();
                Self::Conflicts(problems.map(|problem| problem.message).collect())
            }
            RevertFailure::Failed(failure) => PortError::from(failure).into(),
        }
    }
}

impl Transient for RevertFailure {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.is_transient())
    }
}

#[derive(QueryableByName)]
struct CreatedRow {
    #[diesel(sql_type = Text)]
    key: String,
    /// Changed since, by any execution.
    #[diesel(sql_type = Bool)]
    touched: bool,
}

#[derive(QueryableByName)]
struct KeyRow {
    #[diesel(sql_type = Text)]
    key: String,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// Deletes the rows that `context.execution` created. The caller commits.
pub(super) async fn revert(
    connection: &mut AsyncPgConnection,
    context: &mut WriteContext<'_>,
    request: &RevertRequest,
) -> Result<RevertReport, RevertFailure> {
    lock_execution(connection, context).await?;
    let ledger = take_for_revert(connection, context).await?;
    let in_trash = in_trash(connection, context).await?;
    let deletions = recorded_deletions(connection, context, &ledger).await?;
    let Created { rows, touched } = created(connection, context).await?;
    // Looked for after the rows are locked: no new reference to them can appear.
    let blocking = blocking_rows(connection, context, &rows).await?;
    let (rights, catalog) = (context.rights, context.catalog);
    let reach = |rows: &RowKeys, series: &BTreeMap<_, _>| {
        OutOfReach::check_deleted(rights, catalog, rows, series)
            .map_err(|refusal| RevertFailure::Refused(refusal.into()))
    };
    reach(&blocking, &BTreeMap::new())?;
    if !blocking.is_empty() {
        let blockers = Blocker::of_rows(&blocking);
        return Err(RevertFailure::Refused(RevertError::Blocked(blockers)));
    }
    let mut updated_by_others = BTreeMap::new();
    for (table, ids) in touched {
        let updated = updated_elsewhere(connection, context, &table, &ids).await?;
        updated_by_others.insert(table, updated);
    }
    let (series, _) = delete_all(connection, context, &rows).await?;
    // Found by deleting them; a refusal rolls back.
    reach(&rows, &series)?;
    let annotations =
        delete_of_execution(connection, context.organization, context.execution).await?;
    // An earlier revert took the entries of the ledger: then only rows that an undo brought back are new.
    if !ledger.is_empty() || !rows.is_empty() || annotations > 0 {
        let reverted = LoggedEventKind::ExecutionReverted(context.execution);
        record(connection, context.organization, context.now, &[reverted]).await?;
    }
    // What is left in the trash is for another revert.
    if in_trash.is_empty() {
        record_revert(connection, context.organization, request, None).await?;
    }
    Ok(RevertReport::new(&RevertFacts {
        ledger,
        in_trash,
        deletions,
        rows,
        updated_by_others,
        series,
        annotations,
    }))
}

/// Locks out closing, writing and another revert of the same execution. Taken before its rows, as writes do:
/// they share the lock of the execution until they commit.
pub(super) async fn lock_execution(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<(), RevertFailure> {
    let known = diesel::sql_query(
        "SELECT id FROM labdata.job_execution WHERE id = $1 AND organization_id = $2 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .execute(connection)
    .await?;
    if known == 0 {
        let unknown = PortError::NotFound(Resource::Execution);
        return Err(RevertFailure::Refused(unknown.into()));
    }
    Ok(())
}

/// Rows that the execution created and that still exist.
#[derive(Default)]
struct Created {
    rows: RowKeys,
    /// Keys of those that changed since, by table.
    touched: BTreeMap<String, Vec<String>>,
}

/// Finds and locks the rows that the execution created, in the tables that its ledger names, also in
/// entries that an earlier revert took: the rows may be back by an undo.
async fn created(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<Created, Failure> {
    let tables = tables_of_created(connection, context).await?;
    let mut created = Created::default();
    for table in tables
        .into_iter()
        // The rows of a table that was dropped since are deleted with it.
        .filter_map(|name| context.catalog.keyed_table(&name))
    {
        let names = context.names(&table);
        let mut keys = BTreeSet::new();
        for row in created_rows(connection, context, &names).await? {
            if row.touched {
                let touched = created.touched.entry(table.name.clone()).or_default();
                touched.push(row.key.clone());
            }
            keys.insert(names.read_key(row.key));
        }
        if !keys.is_empty() {
            created.rows.insert(table, keys);
        }
    }
    Ok(created)
}

/// The rows of a table that the execution created, locked.
async fn created_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    names: &TableNames<'_>,
) -> Result<Vec<CreatedRow>, Failure> {
    let rows = statement(format!(
        // Every update moves the time, even on a server whose clock is behind.
        "SELECT t.{key}::text AS key, t.updated_at <> t.created_at AS touched \
         FROM {table} t WHERE t.created_by_execution_id = $1 ORDER BY t.{key} FOR UPDATE",
        key = names.key,
        table = names.name,
    ))
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .load(connection)
    .await?;
    Ok(rows)
}

/// Rows of other executions that reference created rows.
async fn blocking_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    created: &RowKeys,
) -> Result<RowKeys, Failure> {
    let mut blocking = RowKeys::new();
    for (target, keys) in created {
        for (other, column) in context.catalog.row_references(&target.name) {
            let names = context.names(&other);
            let values = key_values(keys.iter().cloned(), column.data_type);
            let query = statement(format!(
                // Also rows without an execution, which `<>` would leave out.
                "SELECT t.{key}::text AS key FROM {table} t WHERE t.{column} = ANY($1::{data_type}[]) \
                 AND t.created_by_execution_id IS DISTINCT FROM $2",
                key = names.key,
                table = names.name,
                column = column_name(column),
                data_type = sql_type(column.data_type),
            ));
            let rows: Vec<KeyRow> = bind_values(query, &values)
                .bind::<SqlUuid, _>(context.execution.as_uuid())
                .load(connection)
                .await?;
            if !rows.is_empty() {
                let keys = rows.into_iter().map(|row| names.read_key(row.key));
                let keys: Vec<_> = keys.collect();
                blocking.entry(other).or_default().extend(keys);
            }
        }
    }
    Ok(blocking)
}

/// The number of these rows that another execution updated.
async fn updated_elsewhere(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    table: &str,
    ids: &[String],
) -> Result<u64, Failure> {
    let updated: CountRow = diesel::sql_query(
        "SELECT count(DISTINCT c.key) AS count FROM labdata.write_ledger l CROSS JOIN LATERAL unnest(l.ids) AS c(key) \
         WHERE l.organization_id = $1 AND l.table_name = $2 AND l.action = 'updated' AND l.execution_id <> $3 AND c.key = ANY($4)",
    )
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(table)
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<Array<Text>, _>(ids)
    .get_result(connection)
    .await?;
    Ok(u64::try_from(updated.count).unwrap_or_default())
}
