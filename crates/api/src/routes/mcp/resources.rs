//! Tables and files as resources.

use labdata_application::{
    Error, Services, catalog::get_schema::get_schema, files::list_files::list_files,
};
use labdata_domain::{
    agent::ToolOutput,
    files::FileFilter,
    page::{Cursor, PageRequest},
    people::actor::Actor,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};

use super::caller::McpServer;

const TABLES: &str = "labdata://tables/";
const FILES: &str = "labdata://files/";
const JSON: &str = "application/json";

/// Number of resources of a page.
const PAGE: u32 = 100;

/// Number of rows of a table that are listed.
const SHOWN_ROWS: u32 = 20;

/// Start of a cursor: the number of tables before the page.
const TABLES_CURSOR: &str = "tables-";

/// Start of a cursor: a cursor of the list of files, or nothing for its first page.
const FILES_CURSOR: &str = "files-";

/// The kinds of resources.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{TABLES}{{name}}"), "table")
            .with_description("Columns and first rows of a table")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{FILES}{{id}}"), "file")
            .with_description("Start of an uploaded file, where it is text")
            .with_mime_type(JSON),
    ]
}

/// A page of the resources: the tables, then the files, newest first.
pub(super) async fn list(
    services: &Services,
    actor: &Actor,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let unknown = || ErrorData::invalid_params("not a cursor of this list", None);
    let cursor = cursor.unwrap_or(TABLES_CURSOR);
    let (resources, next) = if let Some(after) = cursor.strip_prefix(FILES_CURSOR) {
        let after = match after {
            "" => None,
            after => Some(Cursor::decode(after).ok_or_else(unknown)?),
        };
        files(services, actor, after).await.map_err(explain)?
    } else {
        let skipped = cursor.strip_prefix(TABLES_CURSOR).ok_or_else(unknown)?;
        let skipped = match skipped {
            "" => 0,
            skipped => skipped.parse().map_err(|_| unknown())?,
        };
        tables(services, actor, skipped).await.map_err(explain)?
    };
    let mut page = ListResourcesResult::with_all_items(resources);
    page.next_cursor = next;
    Ok(page)
}

async fn tables(
    services: &Services,
    actor: &Actor,
    skipped: usize,
) -> Result<(Vec<Resource>, Option<String>), Error> {
    let (catalog, _) = get_schema(services, actor).await?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let tables = catalog.tables().iter().skip(skipped).take(page);
    let resources: Vec<Resource> = tables
        .map(|table| {
            let resource = Resource::new(format!("{TABLES}{}", table.name), table.name.as_str());
            let resource = resource.with_mime_type(JSON);
            match &table.description {
                Some(description) => resource.with_description(description.as_str()),
                None => resource,
            }
        })
        .collect();
    let displayed = skipped.saturating_add(resources.len());
    let next = if displayed < catalog.tables().len() {
        format!("{TABLES_CURSOR}{displayed}")
    } else {
        FILES_CURSOR.to_owned()
    };
    Ok((resources, Some(next)))
}

async fn files(
    services: &Services,
    actor: &Actor,
    after: Option<Cursor>,
) -> Result<(Vec<Resource>, Option<String>), Error> {
    let page = PageRequest {
        limit: Some(PAGE),
        after,
    };
    let page = list_files(services, actor, &FileFilter::default(), page).await?;
    let resources = page.items.iter().map(|file| {
        Resource::new(format!("{FILES}{}", file.id), file.path.as_str()).with_mime_type(JSON)
    });
    let next = page
        .next
        .map(|next| format!("{FILES_CURSOR}{}", next.encode()));
    Ok((resources.collect(), next))
}

/// Reads a resource, by the tools that show it.
pub(super) async fn read(
    server: &McpServer,
    context: &RequestContext<RoleServer>,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let output = if let Some(name) = uri.strip_prefix(TABLES) {
        table(server, context, name).await?
    } else if let Some(id) = uri.strip_prefix(FILES) {
        let input = Map::from_iter([("file_id".to_owned(), id.into())]);
        server.call(context, "read_file", input).await?
    } else {
        return Err(not_found());
    };
    if output.is_error {
        return Err(ErrorData::resource_not_found(output.text, None));
    }
    let limits = &server.app.platform.agent.limits;
    let contents = ResourceContents::text(output.for_model(limits), uri);
    // A text that was cut is no JSON any more, so it must not be declared as such.
    let contents = if output.is_truncated(limits) {
        contents
    } else {
        contents.with_mime_type(JSON)
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn table(
    server: &McpServer,
    context: &RequestContext<RoleServer>,
    name: &str,
) -> Result<ToolOutput, ErrorData> {
    let (catalog, _) = get_schema(&server.app.services, &server.actor)
        .await
        .map_err(explain)?;
    if !catalog.tables().iter().any(|table| table.name == name) {
        return Err(not_found());
    }
    let input = Map::from_iter([("tables".to_owned(), json!([name]))]);
    let schema = server.call(context, "get_schema", input).await?;
    // Safe in quotes: the name is one of the catalog, which has letters, digits and underscores only.
    let query = format!("SELECT * FROM \"{name}\" LIMIT {SHOWN_ROWS}");
    let input = Map::from_iter([("query".to_owned(), Value::from(query))]);
    let rows = server.call(context, "query_data", input).await?;
    if schema.is_error || rows.is_error {
        return Ok(if schema.is_error { schema } else { rows });
    }
    Ok(ToolOutput::result(format!(
        "{{\"schema\":{},\"first_rows\":{}}}",
        schema.text, rows.text
    )))
}

fn not_found() -> ErrorData {
    ErrorData::resource_not_found("resource not found", None)
}

fn explain(error: Error) -> ErrorData {
    match error {
        Error::Internal(cause) => {
            tracing::error!(cause, "an MCP request failed");
            ErrorData::internal_error("internal error", None)
        }
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
