//! Rows of the ledger.

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::write::{LedgerAction, LedgerEntry},
    events::LoggedEventKind,
};

use super::{context::WriteContext, failure::Failure, row_images::to_json};
use crate::{
    database::{
        errors::corrupt,
        sql::{CachedStatement, statement},
    },
    events::record,
};

/// Maximum number of rows of one statement: five parameters each, of PostgreSQL's 65,535.
const MAX_ROWS: usize = 10_000;

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

/// Writes the entries of one request, and an event per table. Followers are not notified: a commit
/// with a notification waits for every other one.
pub(super) async fn record(
    connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    entries: &[LedgerEntry],
) -> Result<(), Failure> {
    // An entry becomes an event, and a request without changes has none.
    let entries: Vec<&LedgerEntry> = entries.iter().filter(|entry| entry.count > 0).collect();
    for entries in entries.chunks(MAX_ROWS) {
        let rows: Vec<String> = (0..entries.len())
            .map(|row| {
                let first = 5 * row + 4;
                format!(
                    "($1, $2, $3, ${first}, ${}, ${}, ${}, ${}::json)",
                    first + 1,
                    first + 2,
                    first + 3,
                    first + 4
                )
            })
            .collect();
        let mut query = statement(format!(
            "WITH recorded AS (INSERT INTO labdata.write_ledger \
             (organization_id, execution_id, created_at, table_name, action, row_count, ids, row_images) VALUES {} \
             RETURNING table_name) {}",
            rows.join(", "),
            // One event for each table, however many kinds of changes it had.
            record::insertion(
                LoggedEventKind::DATA_WRITTEN,
                "organization_id, at, job_execution_id, table_name",
                "DISTINCT $1::uuid, $3::timestamptz, $2::uuid, table_name",
                "recorded",
            )
        ))
        .bind::<SqlUuid, _>(context.organization.as_uuid())
        .bind::<SqlUuid, _>(context.execution.as_uuid())
        .bind::<Timestamptz, _>(context.now);
        for entry in entries {
            let ids = Some(&entry.ids).filter(|ids| !ids.is_empty());
            query = query
                .bind::<Text, _>(&entry.table)
                .bind::<Text, _>(entry.action.as_str())
                .bind::<BigInt, _>(i64::try_from(entry.count).unwrap_or(i64::MAX))
                .bind::<Nullable<Array<Text>>, _>(ids)
                .bind::<Nullable<Text>, _>(to_json(&entry.stored));
        }
        let mut connection = connection;
        // Only the usual text stays prepared: each further number of entries is another statement.
        if entries.len() == 1 {
            CachedStatement(query).execute(&mut connection).await?;
        } else {
            query.execute(&mut connection).await?;
        }
    }
    Ok(())
}

/// Marks the execution's entries as reverted; returns those that were not before.
pub(super) async fn take_for_revert(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
) -> Result<Vec<LedgerEntry>, Failure> {
    let rows: Vec<LedgerRow> = diesel::sql_query(
        "UPDATE labdata.write_ledger SET reverted_at = $2 WHERE execution_id = $1 AND reverted_at IS NULL \
         RETURNING table_name, action, row_count, ids",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<Timestamptz, _>(context.now)
    .load(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            let action = LedgerAction::from_name(&row.action)
                .ok_or_else(|| corrupt("write_ledger", "action", context.execution.as_uuid()))?;
            Ok(LedgerEntry {
                table: row.table_name,
                action,
                count: u64::try_from(row.row_count).unwrap_or_default(),
                ids: row.ids.unwrap_or_default(),
                stored: Vec::new(),
            })
        })
        .collect()
}
