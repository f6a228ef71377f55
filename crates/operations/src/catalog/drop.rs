//! `DELETE /api/v1/tables/{name}`

use labdata_application::{Error, catalog::drop_table::drop_table};
use labdata_request_body::{fields::or, readers::boolean, shape};

use super::TablePath;
use crate::{About, Admin, Call, Method, NoBody, NoContent, Operation, Tag};

shape! {
    /// Options of dropping a table.
    #[derive(Clone, Copy, Debug)]
    pub struct DropTableQuery {
        /// Also when it holds rows.
        force: bool = or(false, boolean()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "drop_table",
        method: Method::Delete,
        path: "/api/v1/tables/{name}",
        tag: Tag::Tables,
        summary: "Drop a table",
        description: "Refused while another table references it, and while it holds rows unless `force` is \
            set. It moves into the trash, where it can be restored for `LABDATA_TRASH_DAYS`.",
        returns: "It is deleted",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Admin, NoBody, DropTableQuery, TablePath>) -> Result<NoContent, Error> {
    drop_table(
        &call.services,
        &call.actor,
        &call.path.name,
        call.query.force,
    )
    .await?;
    Ok(NoContent)
}
