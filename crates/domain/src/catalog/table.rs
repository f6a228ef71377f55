//! Tables and columns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    data::write::cell::scalar_of_json,
    scalar::{DataType, Scalar},
};

/// The name of a raw table's order column, if it is an `integer` (contract §5).
pub const ORDER_COLUMN: &str = "order";

/// Columns that the server sets in every curated and core table: readable, never written.
pub const SYSTEM_COLUMNS: [(&str, DataType); 3] = [
    ("created_at", DataType::Datetime),
    ("updated_at", DataType::Datetime),
    ("created_by_execution_id", DataType::Uuid),
];

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

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its id; `None` for core columns and the generated `id`.
    pub id: Option<i64>,
    /// Its name in writes and reads.
    pub name: String,
    /// Description for people and agents.
    pub description: Option<String>,
    /// Its type; of a reference, the type of the referenced table's primary key.
    pub data_type: DataType,
    /// True for the table's primary key.
    pub is_primary_key: bool,
    /// True if it may be null.
    pub is_nullable: bool,
    /// True if no two rows may have the same value.
    pub is_unique: bool,
    /// Value of a created row that gives none.
    pub default: Option<Value>,
    /// The referenced table.
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

    /// The default as a value of the column's type; `None` for null.
    #[must_use]
    pub fn default_value(&self) -> Option<Scalar> {
        scalar_of_json(self.default.as_ref()?, self.data_type)
    }

    /// Returns whether a created row must give a value: there is no null, default or generated
    /// key in its place.
    #[must_use]
    pub const fn is_required_to_create(&self) -> bool {
        let is_generated = self.is_primary_key && self.data_type.is_generated_key();
        !self.is_nullable && self.default.is_none() && !is_generated
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
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
    /// ([`SYSTEM_COLUMNS`]) are not among them.
    pub columns: Vec<Column>,
    /// Sets of columns whose values must be unique together.
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

    /// Columns that reference tables.
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

    /// Returns whether it holds series.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.category == SemanticCategory::Raw
    }
}
