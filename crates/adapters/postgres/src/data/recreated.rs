//! Rows that are created under keys that deleted rows had.

use diesel::{
    QueryableByName,
    sql_types::{Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{data::write::TableStep, scalar::DataType};
use time::OffsetDateTime;

use super::{context::WriteContext, failure::Failure};
use crate::database::sql::{CachedStatement, statement};

#[derive(QueryableByName)]
struct LatestRow {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    latest: Option<OffsetDateTime>,
}

/// Checks that the rows that a step has created are of a later moment than the deletions of their keys. It
/// follows the insert, which waits for a deletion that is under way.
///
/// # Errors
/// [`Failure::Late`] if one is not.
pub(super) async fn require_later_than_deletions(
    mut connection: &AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
) -> Result<(), Failure> {
    if !step.may_recreate() {
        return Ok(());
    }
    let table = &step.table;
    let names = context.names(table);
    let key = match table.key().data_type {
        DataType::String | DataType::Text => "c.row_id".to_owned(),
        _ => format!("CAST(c.row_id AS {})", names.key_type),
    };
    // Along the index of deletions by time, of which hardly any is later than the write.
    let query = statement(format!(
        "SELECT max(c.at) AS latest FROM labdata.row_change c JOIN {} t ON t.{} = {key} \
         WHERE c.organization_id = $1 AND c.table_name = $2 AND c.action = 'deleted' AND c.at >= $3 \
         AND t.created_at <= c.at AND t.created_by_execution_id = $4",
        names.name, names.key,
    ))
    .bind::<SqlUuid, _>(context.organization.as_uuid())
    .bind::<Text, _>(&table.name)
    .bind::<Timestamptz, _>(context.now)
    .bind::<SqlUuid, _>(context.execution.as_uuid());
    let row: LatestRow = CachedStatement(query).get_result(&mut connection).await?;
    context.require_later_than(row.latest)
}
