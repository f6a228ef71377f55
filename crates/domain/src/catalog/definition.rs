//! Definitions of tables and their validation.

use serde_json::Value;

use super::{SemanticCategory, access::TableAccess};
use crate::scalar::DataType;

/// A column as a person defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name in writes and reads.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Description.
    pub description: Option<String>,
    /// Its name for people, on axes and headers.
    pub label: Option<String>,
    /// The unit of its values, a UCUM code.
    pub unit: Option<String>,
    /// True if it may be null.
    pub is_nullable: bool,
    /// True if no two rows may have the same value.
    pub is_unique: bool,
    /// True for the primary key, in place of the generated `id`.
    pub is_primary_key: bool,
    /// Value of a created row that gives none.
    pub default: Option<Value>,
    /// The referenced table.
    pub references: Option<String>,
    /// Former name: an existing column of that name is renamed, with its data.
    pub renamed_from: Option<String>,
}

impl ColumnDefinition {
    /// A column that may be null and has nothing else to it.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self {
            name: name.into(),
            data_type,
            description: None,
            label: None,
            unit: None,
            is_nullable: true,
            is_unique: false,
            is_primary_key: false,
            default: None,
            references: None,
            renamed_from: None,
        }
    }
}

/// Effect of a definition on a table that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinitionMode {
    /// The table becomes as defined.
    #[default]
    Exact,
    /// Missing columns are added, and nothing else is changed. The table may have further columns and
    /// stricter rules.
    Ensure,
}

/// A table as a person defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// Its name.
    pub name: String,
    /// Former name: an existing table of that name is renamed, with its data.
    pub renamed_from: Option<String>,
    /// Effect on a table that exists.
    pub mode: DefinitionMode,
    /// Description.
    pub description: Option<String>,
    /// Rows or series.
    pub category: SemanticCategory,
    /// Its columns.
    pub columns: Vec<ColumnDefinition>,
    /// Sets of columns whose values must be unique together.
    pub unique_together: Vec<Vec<String>>,
    /// False if earlier versions of its rows or series are not stored.
    pub history: bool,
    /// Groups that may read and write it; `None` changes nothing: everyone, for a new table.
    pub access: Option<TableAccess>,
}

impl TableDefinition {
    /// A curated table with these columns.
    #[must_use]
    pub fn new(name: impl Into<String>, columns: Vec<ColumnDefinition>) -> Self {
        Self {
            name: name.into(),
            renamed_from: None,
            mode: DefinitionMode::default(),
            description: None,
            category: SemanticCategory::Curated,
            columns,
            unique_together: Vec::new(),
            history: true,
            access: None,
        }
    }
}

/// The refusal of a reference to a table that does not exist.
#[must_use]
pub fn missing_target(column: &str, target: &str) -> String {
    format!("reference \"{column}\": there is no table \"{target}\"")
}
