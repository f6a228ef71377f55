//! Rows of the ledger.

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::write::{LedgerAction, LedgerEntry},
    events::LoggedEventKind,
    ids::ExecutionId,
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{context::WriteContext, failure::Failure, row_images::to_json};
use crate::{
    database::{
        errors::corrupt,
        sql::{CachedStatement, Statement, statement},
    },
    events::record,
};

#[derive(QueryableByName)]
struct LedgerRow {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    action: String,
    #[diesel(sql_type = BigInt)]
    row_count: i64,
    #[diesel(sql_type = Nullable<Array<Text>>)]
    ids: Option<Vec<String>>,
}

/// Number of parameters of [`LedgerRows::bind`].
pub(super) const LEDGER_PARAMETERS: usize = 9;

/// Entries of executions of one organization, as arrays from which a statement stores them. Entries
/// without changes are left out.
#[derive(Debug, Default)]
pub(super) struct LedgerRows<'e> {
    executions: Vec<Uuid>,
    times: Vec<OffsetDateTime>,
    tables: Vec<&'e str>,
    actions: Vec<&'static str>,
    counts: Vec<i64>,
    images: Vec<Option<String>>,
    /// Positions of the first and the last id of each entry in `ids`, from 1.
    first_ids: Vec<i32>,
    last_ids: Vec<i32>,
    /// Ids of all entries, one after the other: PostgreSQL's arrays of arrays have one length.
    ids: Vec<&'e str>,
}

impl<'e> LedgerRows<'e> {
    /// Adds an entry of an execution.
    pub(super) fn add(
        &mut self,
        execution: ExecutionId,
        at: OffsetDateTime,
        entry: &'e LedgerEntry,
    ) {
        // An entry becomes an event, and a request without changes has none.
        if entry.count == 0 {
            return;
        }
        let position = |index: usize| i32::try_from(index).unwrap_or(i32::MAX);
        self.first_ids.push(position(self.ids.len() + 1));
        self.ids.extend(entry.ids.iter().map(String::as_str));
        self.last_ids.push(position(self.ids.len()));
        self.executions.push(execution.as_uuid());
        self.times.push(at);
        self.tables.push(&entry.table);
        self.actions.push(entry.action.as_str());
        self.counts
            .push(i64::try_from(entry.count).unwrap_or(i64::MAX));
        self.images.push(to_json(&entry.stored));
    }

    /// The SQL that stores the entries, and an event for each execution and table: `ledger` is a part of
    /// WITH, `event` what reads it. The organization is `$1`; the parameters of
    /// [`Self::bind`] follow `before` others.
    pub(super) fn insertion(before: usize) -> LedgerInsertion {
        let [
            executions,
            times,
            tables,
            actions,
            counts,
            images,
            firsts,
            lasts,
            ids,
        ]: [_; LEDGER_PARAMETERS] = std::array::from_fn(|index| format!("${}", before + index + 1));
        LedgerInsertion {
            ledger: format!(
                "ledger AS (INSERT INTO labdata.write_ledger \
                 (organization_id, execution_id, created_at, table_name, action, row_count, row_images, ids) \
                 SELECT $1, u.execution, u.at, u.name, u.action, u.row_count, u.images::json, \
                 CASE WHEN u.first_id <= u.last_id THEN ({ids}::text[])[u.first_id:u.last_id] END \
                 FROM unnest({executions}::uuid[], {times}::timestamptz[], {tables}::text[], \
                 {actions}::text[], {counts}::bigint[], {images}::text[], {firsts}::integer[], {lasts}::integer[]) \
                 AS u(execution, at, name, action, row_count, images, first_id, last_id) \
                 RETURNING execution_id, created_at, table_name)"
            ),
            // One event for each table, however many kinds of changes it had.
            event: record::insertion(
                LoggedEventKind::DATA_WRITTEN,
                "organization_id, at, job_execution_id, table_name",
                "DISTINCT $1::uuid, created_at, execution_id, table_name",
                "ledger",
            ),
        }
    }

    /// Binds the arrays after the parameters before them.
    pub(super) fn bind<'f>(&'f self, statement: Statement<'f>) -> Statement<'f> {
        statement
            .bind::<Array<SqlUuid>, _>(&self.executions)
            .bind::<Array<Timestamptz>, _>(&self.times)
            .bind::<Array<Text>, _>(&self.tables)
            .bind::<Array<Text>, _>(&self.actions)
            .bind::<Array<BigInt>, _>(&self.counts)
            .bind::<Array<Nullable<Text>>, _>(&self.images)
            .bind::<Array<Integer>, _>(&self.first_ids)
            .bind::<Array<Integer>, _>(&self.last_ids)
            .bind::<Array<Text>, _>(&self.ids)
    }
}

/// SQL that stores entries and their events.
pub(super) struct LedgerInsertion {
    pub(super) ledger: String,
    pub(super) event: String,
}

/// Writes the entries of one request, and an event per table. Followers are not notified: a commit
/// with a notification waits for every other one.
pub(super) async fn record(
    mut connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    entries: &[LedgerEntry],
) -> Result<(), Failure> {
    let mut rows = LedgerRows::default();
    for entry in entries {
        rows.add(context.execution, context.now, entry);
    }
    if rows.executions.is_empty() {
        return Ok(());
    }
    let LedgerInsertion { ledger, event } = LedgerRows::insertion(1);
    let query = statement(format!("WITH {ledger} {event}"))
        .bind::<SqlUuid, _>(context.organization.as_uuid());
    CachedStatement(rows.bind(query))
        .execute(&mut connection)
        .await?;
    Ok(())
}

#[derive(QueryableByName)]
struct NameRow {
    #[diesel(sql_type = Text)]
    name: String,
}

/// The tables in the trash that the execution changed, whose entries no revert took yet.
pub(super) async fn in_trash(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<Vec<String>, Failure> {
    let names: Vec<NameRow> = diesel::sql_query(
        "SELECT DISTINCT t.name FROM labdata.write_ledger l JOIN labdata.trash t ON t.number = l.trash_number \
         WHERE l.execution_id = $1 AND l.organization_id = $2 AND l.reverted_at IS NULL ORDER BY 1",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .load(connection)
    .await?;
    Ok(names.into_iter().map(|row| row.name).collect())
}

/// The names of all tables in which the execution ever created rows, in their order.
pub(super) async fn tables_of_created(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<Vec<String>, Failure> {
    let names: Vec<NameRow> = diesel::sql_query(
        "SELECT DISTINCT table_name AS name FROM labdata.write_ledger \
         WHERE execution_id = $1 AND organization_id = $2 AND action = 'created' ORDER BY 1",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .load(connection)
    .await?;
    Ok(names.into_iter().map(|row| row.name).collect())
}

/// Marks the execution's entries as reverted; returns those that were not before. Entries of tables in the trash stay for
/// a revert after their restore.
pub(super) async fn take_for_revert(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<Vec<LedgerEntry>, Failure> {
    let rows: Vec<LedgerRow> = diesel::sql_query(
        "UPDATE labdata.write_ledger SET reverted_at = $2 WHERE execution_id = $1 AND reverted_at IS NULL \
         AND NOT EXISTS (SELECT FROM labdata.trash t WHERE t.number = trash_number) \
         RETURNING table_name, action, row_count, ids",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<Timestamptz, _>(context.now)
    .load(connection)
    .await?;
    rows.into_iter()
        .map(|row| row.into_entry(context.execution))
        .collect()
}

/// The execution's entries about series, those that a revert took included.
pub(super) async fn entries_of_series(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<Vec<LedgerEntry>, Failure> {
    let rows: Vec<LedgerRow> = diesel::sql_query(
        "SELECT table_name, action, row_count, ids FROM labdata.write_ledger \
         WHERE execution_id = $1 AND organization_id = $2 AND action IN ('series_written', 'series_replaced')",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .load(connection)
    .await?;
    rows.into_iter()
        .map(|row| row.into_entry(context.execution))
        .collect()
}

impl LedgerRow {
    fn into_entry(self, execution: ExecutionId) -> Result<LedgerEntry, Failure> {
        let action = LedgerAction::from_name(&self.action)
            .ok_or_else(|| corrupt("write_ledger", "action", execution.as_uuid()))?;
        Ok(LedgerEntry {
            table: self.table_name,
            action,
            count: u64::try_from(self.row_count).unwrap_or_default(),
            ids: self.ids.unwrap_or_default(),
            stored: Vec::new(),
        })
    }
}
