//! `DELETE /api/v1/tables/{name}`

use labdata_application::catalog::drop_table::drop_table;
use serde_json::Value;
use utoipa::IntoParams;

use super::put::TablePath;
use crate::http::{
    Admin, Answer, Call, NoBody, NoContent,
    shape::{Fields, Place, Shape, readers::boolean},
};

/// How to drop it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DropTableQuery {
    /// Also when it holds rows.
    #[param(required = false)]
    force: bool,
}

impl Shape for DropTableQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let force = Fields::of(value, place)?.or("force", false, boolean());
        Some(Self { force: force? })
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
    params(("name" = String, Path, description = "The table's name"), DropTableQuery),
    responses((status = 204, description = "It is gone"))
)]
pub async fn handle(call: Call<Admin, NoBody, DropTableQuery, TablePath>) -> Answer<NoContent> {
    drop_table(call.ports(), &call.actor, &call.path.name, call.query.force).await?;
    Ok(NoContent)
}
