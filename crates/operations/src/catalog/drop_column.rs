//! `DELETE /api/v1/tables/{name}/columns/{column}`

use labdata_application::{
    Error,
    catalog::drop_column::{DropColumn, drop_column},
};
use labdata_domain::catalog::Name;
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::{boolean, text},
    shape,
};

use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, Tag};

shape! {
    /// The path of a column.
    #[derive(Clone, Debug)]
    pub struct ColumnPath {
        /// The table's name
        name: String = required(text(..).with("pattern", Name::PATTERN)),
        /// The column's name in writes and reads
        column: String = required(text(..).with("pattern", Name::PATTERN)),
    }
}

shape! {
    /// Options of dropping a column.
    #[derive(Clone, Copy, Debug)]
    pub struct DropColumnQuery {
        /// Also when it holds values.
        force: bool = or(false, boolean()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "drop_column",
        method: Method::Delete,
        path: "/api/v1/tables/{name}/columns/{column}",
        tag: Tag::Tables,
        summary: "Drop a column",
        description: "Refused while it holds values unless `force` is set. Refused always for a primary key, \
            a part of `unique_together`, and in a raw table for the order, the last reference, a reference \
            that points have, and the last column of values. It moves into the trash with its values, where it \
            can be restored for `LABDATA_TRASH_DAYS`.",
        returns: "It is deleted, with its values",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, DropColumnQuery, ColumnPath>) -> Result<NoContent, Error> {
    let command = DropColumn {
        table: call.path.name,
        column: call.path.column,
        force: call.query.force,
    };
    drop_column(&call.services, &call.actor, command).await?;
    Ok(NoContent)
}
