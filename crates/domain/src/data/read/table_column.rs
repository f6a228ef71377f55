//! Columns of tables that are sent as a whole.

use crate::{catalog::Column, scalar::DataType};

/// Column of a table that is sent as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Type of its values.
    pub data_type: DataType,
    /// Its name for people.
    pub label: Option<String>,
    /// The unit of its values, a UCUM code.
    pub unit: Option<String>,
}

impl TableColumn {
    /// A column without label and unit.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self {
            name: name.into(),
            data_type,
            label: None,
            unit: None,
        }
    }
}

impl From<&Column> for TableColumn {
    fn from(column: &Column) -> Self {
        Self {
            label: column.label.clone(),
            unit: column.unit.clone(),
            ..Self::new(&column.name, column.data_type)
        }
    }
}

impl From<(String, DataType)> for TableColumn {
    fn from((name, data_type): (String, DataType)) -> Self {
        Self::new(name, data_type)
    }
}
