//! The tool `get_schema`.

use labdata_application::{Error, catalog::get_schema::get_schema};
use labdata_domain::catalog::{Column, HIDDEN_TABLE, Origin, Table};
use labdata_request_body::{
    fields::optional,
    output,
    readers::{list, text},
    shape,
};

use super::ToolFacts;
use crate::{Call, JsonBody, Read};

shape! {
    /// Arguments of `get_schema`.
    pub(crate) struct GetSchemaInput {
        /// Only these tables; all of them unless given.
        tables: Option<Vec<String>> = optional(list(text(..))),
    }
}

output! {
    /// Tables.
    pub(crate) struct SchemaView {
        /// The tables.
        tables: Vec<TableView>,
        /// Names of the tables that were asked for and do not exist.
        #[optional]
        not_found: Option<Vec<String>>,
    }
}

output! {
    /// A table.
    struct TableView from described: (&Table, u64) {
        /// Its name.
        name: String = described.0.name.clone(),
        /// Its name in SQL, if it has another.
        #[optional]
        sql_table_name: Option<String> =
            Some(described.0.sql_name().into_owned()).filter(|name| *name != described.0.name),
        /// Its description.
        description: Option<String> = described.0.description.clone(),
        /// Its kind; `core` of one that every organization has.
        semantic_category: &'static str = match described.0.origin {
            Origin::Core => "core",
            Origin::Organization => described.0.category.as_str(),
        },
        /// Number of its rows or points, roughly.
        row_count: u64 = described.1,
        /// Its columns.
        columns: Vec<ColumnView> =
            described.0.columns.iter().map(|column| ColumnView::from(&**column)).collect(),
    }
}

output! {
    /// A column. What it has in common with an ordinary one is left out, because each word of a schema
    /// takes tokens.
    struct ColumnView from column: &Column {
        /// Its name.
        name: String = column.name.clone(),
        /// Type of its values.
        data_type: &'static str = column.data_type.as_str(),
        /// Its name in SQL, if it has another.
        #[optional]
        sql_column_name: Option<String> =
            Some(column.sql_name().into_owned()).filter(|name| *name != *column.name),
        /// True for the primary key.
        #[optional]
        is_primary_key: Option<bool> = column.is_primary_key.then_some(true),
        /// True if no two rows share a value.
        #[optional]
        is_unique: Option<bool> = column.is_unique.then_some(true),
        /// True if rows may have no value.
        #[optional]
        is_nullable: Option<bool> = column.is_nullable.then_some(true),
        /// The table that it refers to.
        #[optional]
        foreign_key_table_name: Option<String> = column.references.clone().filter(|table| table != HIDDEN_TABLE),
        /// Its name for people.
        #[optional]
        label: Option<String> = column.label.clone(),
        /// Unit of its values.
        #[optional]
        unit: Option<String> = column.unit.clone(),
        /// Its description.
        #[optional]
        description: Option<String> = column.description.clone(),
    }
}

/// Facts of the tool.
pub(crate) const FACTS: ToolFacts = ToolFacts::of(
    "Lists the tables with their columns, references and about how many \
        rows they hold. In SQL a column has the name sql_column_name where there is one. Raw tables hold \
        series, one row per point.",
);

/// The tables of the organization.
pub(crate) async fn run(call: Call<Read, JsonBody<GetSchemaInput>>) -> Result<SchemaView, Error> {
    let (catalog, counts) = get_schema(&call.services, &call.actor).await?;
    let is_wanted = |table: &Table| {
        let wanted = call.body.tables.as_ref();
        wanted.is_none_or(|wanted| wanted.contains(&table.name))
    };
    let mut not_found = call.body.tables.clone().unwrap_or_default();
    not_found.retain(|name| !catalog.tables().iter().any(|table| table.name == *name));
    let tables = catalog.tables().iter().zip(counts);
    let tables = tables.filter(|(table, _)| is_wanted(table));
    Ok(SchemaView {
        tables: tables
            .map(|(table, rows)| TableView::from((&**table, rows)))
            .collect(),
        not_found: Some(not_found).filter(|names| !names.is_empty()),
    })
}
