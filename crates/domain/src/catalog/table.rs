//! Tables and columns.

use std::{borrow::Cow, cmp::Ordering, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    access::TableAccess,
    column::{ColumnRef, Columns},
    name::sql_name,
};
use crate::scalar::DataType;

/// The name of a raw table's order column, if it is an `integer` (contract §5).
pub const ORDER_COLUMN: &str = "order";

/// Kind of data of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SemanticCategory {
    /// Rows with a key.
    Curated,
    /// Series of points of a parent row, written and replaced as a whole.
    Raw,
}

impl SemanticCategory {
    /// Both categories.
    pub const ALL: [Self; 2] = [Self::Curated, Self::Raw];

    /// The category's name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Curated => "curated",
            Self::Raw => "raw",
        }
    }

    /// The category of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str() == name)
    }
}

/// Author of a table's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The platform: every organization has it.
    Core,
    /// The organization.
    Organization,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its id; `None` for core tables.
    pub id: Option<i64>,
    /// Its name.
    pub name: String,
    /// Description for people and agents.
    pub description: Option<String>,
    /// Kind of data.
    pub category: SemanticCategory,
    /// Author of the definition.
    pub origin: Origin,
    /// Its columns, the primary key of a curated table first. The system columns
    /// ([`Self::system_columns`]) are not among them.
    pub columns: Columns,
    /// Sets of columns whose values must be unique together.
    pub unique_together: Vec<Vec<String>>,
    /// False if earlier versions of its rows or series are not stored.
    pub history: bool,
    /// Groups that may read and write it.
    pub access: TableAccess,
}

impl Table {
    /// The table's name in SQL: one that is a value there ends in `_`.
    #[must_use]
    pub fn sql_name(&self) -> Cow<'_, str> {
        sql_name(&self.name)
    }

    /// The column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnRef> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The primary key; `None` for raw tables.
    #[must_use]
    pub fn primary_key(&self) -> Option<&ColumnRef> {
        self.columns.iter().find(|column| column.is_primary_key)
    }

    /// Columns that reference tables, with the names of these.
    pub fn references(&self) -> impl Iterator<Item = (&ColumnRef, &str)> {
        self.columns
            .iter()
            .filter_map(|column| Some((column, column.references.as_deref()?)))
    }

    /// The order column of a raw table that has one.
    #[must_use]
    pub fn order_column(&self) -> Option<&ColumnRef> {
        self.column(ORDER_COLUMN).filter(|column| {
            self.category == SemanticCategory::Raw
                && column.data_type == DataType::Integer
                && column.references.is_none()
        })
    }

    /// Returns whether it holds series.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.category == SemanticCategory::Raw
    }
}

/// Handle to a table whose rows have a primary key: a curated or core one. Handles are those of one
/// catalog, where the name tells tables apart.
#[derive(Clone, Debug)]
pub struct KeyedTable {
    table: Arc<Table>,
    key: ColumnRef,
}

impl KeyedTable {
    /// The table as one of rows with a key; `None` for a raw one.
    #[must_use]
    pub fn of(table: &Arc<Table>) -> Option<Self> {
        let key = table.primary_key()?.clone();
        let table = Arc::clone(table);
        Some(Self { table, key })
    }

    /// A table of that name without other columns than its key.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        let table = Table {
            id: None,
            name: name.to_owned(),
            description: None,
            category: SemanticCategory::Curated,
            origin: Origin::Organization,
            columns: vec![super::generated_key::generated_key()].into(),
            unique_together: Vec::new(),
            history: true,
            access: TableAccess::default(),
        };
        Self::of(&Arc::new(table)).unwrap()
    }

    /// The primary key.
    #[must_use]
    pub const fn key(&self) -> &ColumnRef {
        &self.key
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Deref for KeyedTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl PartialEq for KeyedTable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for KeyedTable {}

impl PartialOrd for KeyedTable {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyedTable {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

/// Handle to the reference by which rows own the points of a raw table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The raw table.
    pub table: Arc<Table>,
    /// Its reference to the row that owns the points.
    pub column: ColumnRef,
    /// The table of that row.
    pub parent: KeyedTable,
    /// True if that table is hidden from the caller, who sees of its rows the keys of those that own points.
    pub is_parent_hidden: bool,
}
