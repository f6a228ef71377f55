//! A table as the API shows it.

use labdata_domain::{
    catalog::{Column, Origin, SemanticCategory, Table},
    scalar::DataType,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

/// Category of the tables that every organization has.
const CORE: &str = "core";

names! {
    /// Type of the values of a column.
    pub ColumnDataType = DataType::ALL.map(DataType::as_str);
    /// Kind of data of a table.
    pub TableCategory = SemanticCategory::ALL
        .map(SemanticCategory::as_str)
        .into_iter()
        .chain([CORE]);
}

/// A table: one of the organization's, or a core table.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Table)]
pub struct TableView {
    /// The table's id; null for core tables.
    id: Option<i64>,
    /// Its name, in the API and in SQL.
    name: String,
    /// Description of the contents.
    description: Option<String>,
    /// `curated` (rows), `raw` (series of points) or `core` (rows, in every organization).
    #[schema(value_type = TableCategory)]
    semantic_category: &'static str,
    /// Its columns, the primary key of a table of rows first.
    columns: Vec<ColumnView>,
    /// Sets of columns whose values together may occur once.
    unique_together: Vec<Vec<String>>,
    /// About how many rows, or points, it holds; exact for small tables. In the schema only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    row_count_estimate: Option<u64>,
}

impl TableView {
    /// The same, with about how many rows it holds.
    pub(crate) fn with_row_count(mut self, count: u64) -> Self {
        self.row_count_estimate = Some(count);
        self
    }
}

/// A column of a table.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableColumn)]
#[expect(clippy::struct_excessive_bools, reason = "the contract's own fields")]
pub struct ColumnView {
    /// The column's id; null for columns of core tables.
    id: Option<i64>,
    /// Its name in writes and reads.
    name: String,
    /// Its name in SQL, where references end in `_id`.
    sql_column_name: String,
    /// Description of the contents.
    description: Option<String>,
    /// Type of its values.
    #[schema(value_type = ColumnDataType)]
    data_type: &'static str,
    /// True for the primary key.
    is_primary_key: bool,
    /// True for a reference to another table.
    is_foreign_key: bool,
    /// True if the column may be null.
    is_nullable: bool,
    /// True if values must be unique.
    is_unique: bool,
    /// The value of a created row that gives none.
    default: Option<serde_json::Value>,
    /// The table whose row it points at.
    foreign_key_table_name: Option<String>,
}

impl From<&Table> for TableView {
    fn from(table: &Table) -> Self {
        Self {
            id: table.id,
            name: table.name.clone(),
            description: table.description.clone(),
            semantic_category: match table.origin {
                Origin::Core => CORE,
                Origin::Organization => table.category.as_str(),
            },
            columns: table
                .columns
                .iter()
                .map(|column| ColumnView::from(&**column))
                .collect(),
            unique_together: table.unique_together.clone(),
            row_count_estimate: None,
        }
    }
}

impl From<&Column> for ColumnView {
    fn from(column: &Column) -> Self {
        Self {
            id: column.id,
            name: column.name.clone(),
            sql_column_name: column.sql_name().into_owned(),
            description: column.description.clone(),
            data_type: column.data_type.as_str(),
            is_primary_key: column.is_primary_key,
            is_foreign_key: column.references.is_some(),
            is_nullable: column.is_nullable,
            is_unique: column.is_unique,
            default: column.default.clone(),
            foreign_key_table_name: column.references.clone(),
        }
    }
}
