//! `GET /api/v1/job-executions/{execution_id}/changes/{table}`

use actix_web::web::Json;
use labdata_application::data::execution_changes::changed_rows;
use labdata_domain::{
    data::{changes::RowChange, read::RowJson},
    ids::ExecutionId,
    refusal::Resource,
};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id, text},
    shape,
};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    http::{ApiResult, Call, NoBody, OrNotFound, Read},
    names,
};

shape! {
    /// An execution and a table.
    #[derive(Clone, Debug)]
    pub struct ChangedTablePath {
        /// The execution.
        execution_id: MaybeId<ExecutionId> = required(id()),
        /// The table's name.
        table: String = required(text(..)),
    }
}

names! {
    /// Kind of change to a row.
    pub RowAction = RowChange::NAMES;
}

/// A row that an execution changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangedRow)]
pub struct ChangedRowView {
    /// The row's key.
    id: String,
    /// Kind of change.
    #[schema(value_type = RowAction)]
    action: &'static str,
    /// Values before the execution changed it; null for a created row, and for one longer than 8 KiB.
    #[schema(value_type = Option<Object>)]
    before: Option<Box<RawValue>>,
    /// Values after its last change by the execution, of a created row those that it has now; null for a
    /// deleted row, and for one longer than 8 KiB.
    #[schema(value_type = Option<Object>)]
    after: Option<Box<RawValue>>,
}

/// Rows of a table that an execution changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangedRows)]
pub struct ChangedRowsView {
    /// The table's name.
    table: String,
    /// The first 100 rows of each kind of change: created, updated, deleted.
    rows: Vec<ChangedRowView>,
}

fn raw(row: Option<RowJson>) -> Option<Box<RawValue>> {
    RawValue::from_string(row?.into_string()).ok()
}

/// Shows the rows of a table that an execution changed, before and after
///
/// Of each kind of change the first 100 rows, by the bytes of their ids. Values are kept of the first 100
/// rows that a table write updates or deletes, as far as a row is no longer than 8 KiB; the bare ids of
/// all are at `GET /job-executions/{execution_id}/changes`. A row that the execution updated several times
/// has its values before the first and after the last update. Created rows are shown as they are now, and
/// are gone after a revert.
#[utoipa::path(
    get,
    path = "/api/v1/job-executions/{execution_id}/changes/{table}",
    operation_id = "list_changed_rows",
    tag = "job-executions",
    responses((status = 200, description = "The rows", body = ChangedRowsView))
)]
pub async fn handle(
    call: Call<Read, NoBody, (), ChangedTablePath>,
) -> ApiResult<Json<ChangedRowsView>> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let table = call.path.table.clone();
    let changed = changed_rows(call.ports(), &call.actor, id, &table).await?;
    let rows = changed.into_iter().flat_map(|(change, rows)| {
        rows.into_iter().map(move |row| ChangedRowView {
            id: row.id,
            action: change.as_str(),
            before: raw(row.before),
            after: raw(row.after),
        })
    });
    Ok(Json(ChangedRowsView {
        table,
        rows: rows.collect(),
    }))
}
