//! The catalog: a consistent picture of all tables of one organization.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ORDER_COLUMN, core_tables};
use crate::scalar::DataType;

/// Counts an organization's table changes, so that a stale picture is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CatalogVersion(pub i64);

/// What kind of data a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SemanticCategory {
    /// Rows with a key, written one by one.
    Curated,
    /// Series of points that belong to a row, written and replaced as a whole.
    Raw,
}

impl SemanticCategory {
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
        [Self::Curated, Self::Raw]
            .into_iter()
            .find(|category| category.as_str() == name)
    }
}

/// Who defined a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The platform: every organization has it.
    Core,
    /// The organization.
    Organization,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its id; `None` for core columns and the generated `id`.
    pub id: Option<i64>,
    /// Its name in writes and reads.
    pub name: String,
    /// What it holds, for people and agents.
    pub description: Option<String>,
    /// Its type; of a reference, the type of the referenced table's primary key.
    pub data_type: DataType,
    /// Whether it is the table's primary key.
    pub is_primary_key: bool,
    /// Whether it may be null.
    pub is_nullable: bool,
    /// Whether no two rows may have the same value.
    pub is_unique: bool,
    /// The value of a created row that gives none.
    pub default: Option<Value>,
    /// The table whose row it points at.
    pub references: Option<String>,
}

impl Column {
    /// The column's name in SQL: references end in `_id` there.
    #[must_use]
    pub fn sql_name(&self) -> Cow<'_, str> {
        if self.references.is_some() {
            Cow::Owned(format!("{}_id", self.name))
        } else {
            Cow::Borrowed(&self.name)
        }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its id; `None` for core tables.
    pub id: Option<i64>,
    /// Its name.
    pub name: String,
    /// What it holds, for people and agents.
    pub description: Option<String>,
    /// Rows or series.
    pub category: SemanticCategory,
    /// Who defined it.
    pub origin: Origin,
    /// Its columns, the primary key of a curated table first. The server's own columns
    /// ([`super::SYSTEM_COLUMNS`]) are not among them.
    pub columns: Vec<Column>,
    /// Sets of columns whose values together may occur once.
    pub unique_together: Vec<Vec<String>>,
}

impl Table {
    /// The index and column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.name == name)
    }

    /// The primary key; `None` for raw tables.
    #[must_use]
    pub fn primary_key(&self) -> Option<(usize, &Column)> {
        self.columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.is_primary_key)
    }

    /// Columns that point at other tables.
    pub fn references(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.references.is_some())
    }

    /// The order column of a raw table that has one.
    #[must_use]
    pub fn order_column(&self) -> Option<(usize, &Column)> {
        self.column(ORDER_COLUMN).filter(|(_, column)| {
            self.category == SemanticCategory::Raw
                && column.data_type == DataType::Integer
                && column.references.is_none()
        })
    }

    /// Whether it holds series.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.category == SemanticCategory::Raw
    }
}

/// All tables of an organization at one version. Cheap to share; never changes.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The version that this is a picture of.
    pub version: CatalogVersion,
    tables: Vec<Arc<Table>>,
    by_name: HashMap<String, usize>,
}

impl Catalog {
    /// A catalog of the organization's tables; the core tables are added.
    #[must_use]
    pub fn new(version: CatalogVersion, organization_tables: Vec<Table>) -> Self {
        let tables: Vec<Arc<Table>> = organization_tables
            .into_iter()
            .chain(core_tables())
            .map(Arc::new)
            .collect();
        let by_name = tables
            .iter()
            .enumerate()
            .map(|(index, table)| (table.name.clone(), index))
            .collect();
        Self {
            version,
            tables,
            by_name,
        }
    }

    /// The table of that name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.by_name
            .get(name)
            .and_then(|index| self.tables.get(*index))
    }

    /// All tables: the organization's first, then the core tables.
    #[must_use]
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Tables with a column that points at this one, with that column.
    pub fn referencing<'a>(
        &'a self,
        table: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<Table>, &'a Column)> {
        self.tables.iter().flat_map(move |other| {
            other
                .columns
                .iter()
                .filter(move |column| column.references.as_deref() == Some(table))
                .map(move |column| (other, column))
        })
    }
}
