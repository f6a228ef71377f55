//! Columns that the server sets.

use super::{Column, Table};
use crate::scalar::DataType;

/// A column that the server sets: readable, never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemColumn {
    /// Its name, in reads and in SQL.
    pub name: &'static str,
    /// Type of its values.
    pub data_type: DataType,
    /// Description for people and agents.
    pub description: &'static str,
    /// True if it may be null.
    pub is_nullable: bool,
}

/// The system columns of every table whose rows have a key.
static OF_ROWS: [SystemColumn; 4] = [
    SystemColumn {
        name: "created_at",
        data_type: DataType::Datetime,
        description: "When the row was created.",
        is_nullable: false,
    },
    SystemColumn {
        name: "updated_at",
        data_type: DataType::Datetime,
        description: "When the row was last changed.",
        is_nullable: false,
    },
    SystemColumn {
        name: "created_by_execution_id",
        data_type: DataType::Uuid,
        description: "The execution that created the row.",
        is_nullable: true,
    },
    SystemColumn {
        name: "updated_by_execution_id",
        data_type: DataType::Uuid,
        description: "The execution that last changed the row, or created it.",
        is_nullable: true,
    },
];

/// The system columns of a raw table.
static OF_POINTS: [SystemColumn; 1] = [SystemColumn {
    name: "created_by_execution_id",
    data_type: DataType::Uuid,
    description: "The execution that wrote the series.",
    is_nullable: true,
}];

impl SystemColumn {
    /// The names of all of them.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        OF_ROWS.iter().map(|column| column.name)
    }

    /// The system column of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        OF_ROWS.iter().find(|column| column.name == name)
    }
}

impl From<&SystemColumn> for Column {
    fn from(column: &SystemColumn) -> Self {
        Self {
            id: None,
            name: column.name.to_owned(),
            description: Some(column.description.to_owned()),
            label: None,
            unit: None,
            data_type: column.data_type,
            is_primary_key: false,
            is_nullable: column.is_nullable,
            is_unique: false,
            default: None,
            references: None,
        }
    }
}

impl Table {
    /// The system columns of the table, which follow its own.
    #[must_use]
    pub fn system_columns(&self) -> &'static [SystemColumn] {
        if self.is_raw() { &OF_POINTS } else { &OF_ROWS }
    }
}
