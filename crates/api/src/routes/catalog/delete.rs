//! `DELETE /api/v1/tables/{name}`

use labdata_application::catalog::drop_table::drop_table;
use labdata_request_body::{fields::or, readers::boolean, shape};

use super::put::TablePath;
use crate::http::{Admin, ApiResult, Call, NoBody, NoContent};

shape! {
    /// Options of dropping a table.
    #[derive(Debug)]
    pub struct DropTableQuery {
        /// Also when it holds rows.
        force: bool = or(false, boolean()),
    }
}

/// Drop a table
///
/// Refused while another table references it, and while it holds rows unless `force` is set.
#[utoipa::path(
    delete,
    path = "/api/v1/tables/{name}",
    tag = "tables",
    operation_id = "drop_table",
    responses((status = 204, description = "It is gone"))
)]
pub async fn handle(call: Call<Admin, NoBody, DropTableQuery, TablePath>) -> ApiResult<NoContent> {
    drop_table(call.ports(), &call.actor, &call.path.name, call.query.force).await?;
    Ok(NoContent)
}
