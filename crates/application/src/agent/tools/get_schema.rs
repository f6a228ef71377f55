//! The tool `get_schema`.

use async_trait::async_trait;
use labdata_domain::catalog::{Column, Origin, Table};
use labdata_request_body::{
    fields::optional,
    readers::{list, text},
    shape,
};
use serde_json::{Map, Value, json};

use super::{ToolContext, TypedTool};
use crate::{Error, catalog::get_schema::get_schema};

shape! {
    /// Arguments of `get_schema`.
    pub(super) struct GetSchemaInput {
        /// Only these tables; all of them unless given.
        tables: Option<Vec<String>> = optional(list(text(..))),
    }
}

/// The tables of the organization.
pub(super) struct GetSchema;

#[async_trait]
impl TypedTool for GetSchema {
    type Input = GetSchemaInput;
    const NAME: &'static str = "get_schema";
    const DESCRIPTION: &'static str = "Lists the tables with their columns, references and about how many \
        rows they hold. In SQL a column has the name sql_name where there is one. Raw tables hold series, \
        one row per point.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: GetSchemaInput) -> Result<String, Error> {
        let (catalog, counts) = get_schema(context.ports, context.actor).await?;
        let is_wanted = |table: &Table| {
            let wanted = input.tables.as_ref();
            wanted.is_none_or(|wanted| wanted.contains(&table.name))
        };
        let tables = catalog.tables().iter().zip(counts);
        let tables = tables.filter(|(table, _)| is_wanted(table));
        let tables: Vec<Value> = tables
            .map(|(table, rows)| table_json(table, rows))
            .collect();
        Ok(json!({ "tables": tables }).to_string())
    }
}

fn table_json(table: &Table, rows: u64) -> Value {
    let category = match table.origin {
        Origin::Core => "core",
        Origin::Organization => table.category.as_str(),
    };
    json!({
        "name": table.name,
        "description": table.description,
        "category": category,
        "rows": rows,
        "columns": table.columns.iter().map(|column| column_json(column)).collect::<Vec<_>>(),
    })
}

/// The column with what differs from an ordinary one, so that many of them fit into an output.
fn column_json(column: &Column) -> Value {
    let mut json = Map::new();
    json.insert("name".to_owned(), column.name.as_str().into());
    json.insert("type".to_owned(), column.data_type.as_str().into());
    let sql_name = column.sql_name();
    // Only where it differs, because every word of the schema takes tokens.
    if sql_name != column.name.as_str() {
        json.insert("sql_name".to_owned(), sql_name.as_ref().into());
    }
    let flags = [
        ("primary_key", column.is_primary_key),
        ("unique", column.is_unique),
        ("nullable", column.is_nullable),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        json.insert(name.to_owned(), true.into());
    }
    let texts = [
        ("references", &column.references),
        ("description", &column.description),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            json.insert(name.to_owned(), text.as_str().into());
        }
    }
    Value::Object(json)
}
