//! `GET /api/v1/job-executions/{execution_id}/changes/{table}`

use labdata_application::{Error, data::execution_changes::changed_rows};
use labdata_domain::{data::changes::RowChange, ids::ExecutionId, refusal::Resource};
use labdata_request_body::{
    fields::required,
    names, output,
    readers::{MaybeId, id, text},
    shape,
};

use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag, data::RenderedObject};

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

output! {
    /// A row that an execution changed.
    #[derive(Debug)]
    pub struct ChangedRenderedObject as "ChangedRow" {
        /// The row's key.
        id: String,
        /// Kind of change.
        action: RowAction,
        /// Values before the execution changed it; null for a created row, and for one longer than 8 KiB.
        before: Option<RenderedObject>,
        /// Values after its last change by the execution, of a created row those that it has now; null for a
        /// deleted row, and for one longer than 8 KiB.
        after: Option<RenderedObject>,
    }
}

output! {
    /// Rows of a table that an execution changed.
    #[derive(Debug)]
    pub struct ChangedRowsView as "ChangedRows" {
        /// The table's name.
        table: String,
        /// The first 100 rows of each kind of change: created, updated, deleted.
        rows: Vec<ChangedRenderedObject>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "list_changed_rows",
        method: Method::Get,
        path: "/api/v1/job-executions/{execution_id}/changes/{table}",
        tag: Tag::JobExecutions,
        summary: "Shows the rows of a table that an execution changed, before and after",
        description: "Of each kind of change the first 100 rows, by the bytes of their ids. Values are \
            stored of the first 100 rows that a table write updates or deletes, as far as a row is no \
            longer than 8 KiB; the bare ids of all are at \
            `GET /job-executions/{execution_id}/changes`. A row that the execution updated several times \
            has its values before the first and after the last update. Created rows are given as they \
            are now, and are deleted after a revert.",
        returns: "The rows",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), ChangedTablePath>) -> Result<ChangedRowsView, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let table = call.path.table;
    let changed = changed_rows(&call.services, &call.actor, id, &table).await?;
    let rows = changed.into_iter().flat_map(|(change, rows)| {
        rows.into_iter().map(move |row| ChangedRenderedObject {
            id: row.id,
            action: change.as_str().into(),
            before: row.before.and_then(RenderedObject::of),
            after: row.after.and_then(RenderedObject::of),
        })
    });
    Ok(ChangedRowsView {
        table,
        rows: rows.collect(),
    })
}
