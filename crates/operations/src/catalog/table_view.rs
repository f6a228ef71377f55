//! A table as the API shows it.

use labdata_domain::{
    catalog::{Column, HIDDEN_TABLE, Origin, SemanticCategory, SystemColumn, Table, TableAccess},
    scalar::DataType,
};
use labdata_request_body::{names, output};
use serde_json::Value;

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

output! {
    /// A table: one of the organization's, or a core table.
    #[derive(Clone, Debug)]
    pub struct TableView as "Table" from table: &Table {
        /// The table's id; null for core tables.
        id: Option<i64> = table.id,
        /// Its name, in SQL too unless `sql_table_name` is another.
        name: String = table.name.clone(),
        /// Its name in SQL if that is another, because PostgreSQL reads the name as a value.
        #[optional]
        sql_table_name: Option<String> =
            Some(table.sql_name().into_owned()).filter(|name| *name != table.name),
        /// Description of the contents.
        description: Option<String> = table.description.clone(),
        /// `curated` (rows), `raw` (series of points) or `core` (rows, in every organization).
        semantic_category: TableCategory = match table.origin {
            Origin::Core => CORE.into(),
            Origin::Organization => table.category.as_str().into(),
        },
        /// Its columns: the primary key of a table of rows first, system columns last.
        columns: Vec<ColumnView> = table
            .columns
            .iter()
            .map(|column| ColumnView::from(&**column))
            .chain(table.system_columns().iter().map(|it| ColumnView::from(&Column::from(it))))
            .collect(),
        /// Sets of columns whose values together may occur once.
        unique_together: Vec<Vec<String>> = table.unique_together.clone(),
        /// False if earlier versions of its rows or series are not stored.
        history: bool = table.history,
        /// Groups that may read and write it; `{}` for everyone of the organization.
        access: TableAccessView = (&table.access).into(),
        /// About how many rows, or points, it holds; exact for small tables. In the schema only.
        #[optional]
        row_count_estimate: Option<u64> = None,
    }
}

output! {
    /// Groups whose members may read and write a table, besides administrators.
    #[derive(Clone, Debug)]
    pub struct TableAccessView as "TableAccess" from access: &TableAccess {
        /// Names of the groups that may read it; left out for everyone.
        #[optional]
        read: Option<Vec<String>> = Some(access.read.clone()).filter(|groups| !groups.is_empty()),
        /// Names of the groups that may write it; left out for everyone who may read it.
        #[optional]
        write: Option<Vec<String>> = Some(access.write.clone()).filter(|groups| !groups.is_empty()),
    }
}

impl TableView {
    /// The same, with about how many rows it holds.
    pub(super) fn with_row_count(mut self, count: u64) -> Self {
        self.row_count_estimate = Some(count);
        self
    }
}

output! {
    /// A column of a table.
    #[derive(Clone, Debug)]
    pub struct ColumnView as "TableColumn" from column: &Column {
        /// The column's id; null for columns of core tables.
        id: Option<i64> = column.id,
        /// Its name in writes and reads.
        name: String = column.name.clone(),
        /// Its name in SQL, where references end in `_id`, and names that are values, as `user`, in `_`.
        sql_column_name: String = column.sql_name().into_owned(),
        /// Description of the contents.
        description: Option<String> = column.description.clone(),
        /// Its name for people, on axes and headers.
        label: Option<String> = column.label.clone(),
        /// The unit of its values, a UCUM code.
        unit: Option<String> = column.unit.clone(),
        /// Type of its values.
        data_type: ColumnDataType = column.data_type.as_str().into(),
        /// True for the primary key.
        is_primary_key: bool = column.is_primary_key,
        /// True for a reference to another table.
        is_foreign_key: bool = column.references.is_some(),
        /// True if the column may be null.
        is_nullable: bool = column.is_nullable,
        /// True if values must be unique.
        is_unique: bool = column.is_unique,
        /// True if the server sets its values, which cannot be written.
        is_system: bool = SystemColumn::from_name(&column.name).is_some(),
        /// The value of a created row that gives none.
        default: Option<Value> = column.default.clone(),
        /// The table whose row it points at; null also if that table is hidden from the caller.
        foreign_key_table_name: Option<String> =
            column.references.clone().filter(|table| table != HIDDEN_TABLE),
    }
}
