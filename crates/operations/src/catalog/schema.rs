//! `GET /api/v1/tools/schema`

use labdata_application::{Error, catalog::get_schema::get_schema};

use super::table_view::TableView;
use crate::{About, Call, Method, Operation, Read, Tag, tools::get_schema};

pub(super) fn operation() -> Operation {
    About {
        name: "get_schema",
        method: Method::Get,
        path: "/api/v1/tools/schema",
        tag: Tag::Tools,
        summary: "Get the schema",
        description: "The organization's tables, then the core tables, with their columns and references, \
            and about how many rows or points each holds.",
        returns: "The tables",
        refusals: &[],
    }
    .runs(run)
    .tool_running(get_schema::FACTS, get_schema::run)
}

async fn run(call: Call<Read>) -> Result<Vec<TableView>, Error> {
    let (catalog, counts) = get_schema(&call.services, &call.actor).await?;
    let tables = catalog.tables().iter().zip(counts);
    let views = tables.map(|(table, count)| TableView::from(table.as_ref()).with_row_count(count));
    Ok(views.collect())
}
