//! `GET /api/v1/tools/schema`

use actix_web::web::Json;
use labdata_application::catalog::get_schema::get_schema;

use crate::{
    http::{ApiResult, Call, Read},
    routes::catalog::table_view::TableView,
};

/// Get the schema
///
/// The organization's tables, then the core tables, with their columns and references, and about
/// how many rows or points each holds.
#[utoipa::path(
    get,
    path = "/api/v1/tools/schema",
    tag = "tools",
    operation_id = "get_schema",
    responses((status = 200, description = "The tables", body = [TableView]))
)]
pub async fn handle(call: Call<Read>) -> ApiResult<Json<Vec<TableView>>> {
    let (catalog, counts) = get_schema(call.ports(), &call.actor).await?;
    Ok(Json(
        catalog
            .tables()
            .iter()
            .zip(counts)
            .map(|(table, count)| TableView::from(table.as_ref()).with_row_count(count))
            .collect(),
    ))
}
