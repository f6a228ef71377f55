//! Deletions of an execution, by its recorded changes.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::data::{
    revert::RecordedDeletions,
    write::{LedgerAction, LedgerEntry},
};

use super::{context::WriteContext, failure::Failure};

#[derive(QueryableByName)]
struct DeletedRow {
    #[diesel(sql_type = Text)]
    table_name: String,
    /// Null for chunks.
    #[diesel(sql_type = Nullable<Text>)]
    row_id: Option<String>,
    #[diesel(sql_type = Bool)]
    is_own: bool,
    #[diesel(sql_type = BigInt)]
    count: i64,
    #[diesel(sql_type = BigInt)]
    points: i64,
}

pub(super) async fn recorded_deletions(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    ledger: &[LedgerEntry],
) -> Result<RecordedDeletions, Failure> {
    let mut deletions = RecordedDeletions::default();
    let is_deletion = |entry: &LedgerEntry| {
        matches!(
            entry.action,
            LedgerAction::Deleted | LedgerAction::PointsDeleted
        )
    };
    if !ledger.iter().any(is_deletion) {
        return Ok(deletions);
    }
    let rows: Vec<DeletedRow> = diesel::sql_query(
        // Of series those that were deleted with their parents; of rows of others only their number would be of use.
        "SELECT table_name, row_id, is_own, count(*) AS count, sum(points)::bigint AS points FROM ( \
             SELECT table_name, CASE WHEN before ->> '_points' IS NULL THEN row_id END AS row_id, \
                 coalesce((coalesce(before ->> '_execution', before ->> 'created_by_execution_id'))::uuid = $1, false) AS is_own, \
                 coalesce((before ->> '_points')::bigint, 0) AS points \
             FROM labdata.row_change WHERE execution_id = $1 AND organization_id = $2 AND action = 'deleted' \
             AND owner_column IS NULL AND NOT is_undone) d \
         WHERE is_own OR row_id IS NULL GROUP BY 1, 2, 3",
    )
    .bind::<SqlUuid, _>(context.execution.as_uuid())
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .load(connection)
    .await?;
    for row in rows {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        let table = row.table_name;
        if let Some(id) = row.row_id {
            let own = deletions.own_rows.entry(table).or_default();
            own.insert(id, count(row.count));
            continue;
        }
        *deletions.points.entry(table.clone()).or_default() += count(row.points);
        if row.is_own {
            *deletions.own_points.entry(table).or_default() += count(row.points);
        }
    }
    Ok(deletions)
}
