//! `DELETE /api/v1/tables/{name}/columns/{column}`

use labdata_application::catalog::drop_column::{DropColumn, drop_column};
use labdata_domain::catalog::Name;
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::{boolean, text},
    shape,
};

use crate::http::{Admin, ApiResult, Call, NoBody, NoContent};

shape! {
    /// The path of a column.
    #[derive(Debug)]
    pub struct ColumnPath {
        /// The table's name
        name: String = required(text(..).with("pattern", Name::PATTERN)),
        /// The column's name in writes and reads
        column: String = required(text(..).with("pattern", Name::PATTERN)),
    }
}

shape! {
    /// Options of dropping a column.
    #[derive(Debug)]
    pub struct DropColumnQuery {
        /// Also when it holds values.
        force: bool = or(false, boolean()),
    }
}

/// Drop a column
///
/// Refused while it holds values unless `force` is set. Refused always for a primary key, a part of
/// `unique_together`, and in a raw table for the order, the last reference, a reference that points
/// have, and the last column of values.
#[utoipa::path(
    delete,
    path = "/api/v1/tables/{name}/columns/{column}",
    tag = "tables",
    operation_id = "drop_column",
    responses((status = 204, description = "It is gone, with its values"))
)]
pub async fn handle(
    call: Call<Admin, NoBody, DropColumnQuery, ColumnPath>,
) -> ApiResult<NoContent> {
    let command = DropColumn {
        table: call.path.name.clone(),
        column: call.path.column.clone(),
        force: call.query.force,
    };
    drop_column(call.ports(), &call.actor, command).await?;
    Ok(NoContent)
}
