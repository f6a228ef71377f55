//! An organization's tables: what they are, how they may be defined and changed.

mod change;
mod core_tables;
mod definition;
mod name;
mod platform_tables;
mod snapshot;
#[cfg(test)]
mod tests;

pub use change::{Alteration, CatalogChange, ColumnChange, Refusal};
pub use core_tables::core_tables;
pub use definition::{ColumnDefinition, TableDefinition};
pub use name::{InvalidName, Name};
pub use platform_tables::{PlatformColumn, PlatformTable};
pub use snapshot::{Catalog, CatalogVersion, Column, Origin, SemanticCategory, Table};

/// Columns that the server keeps in every curated and core table: readable, never written.
pub const SYSTEM_COLUMNS: [(&str, crate::scalar::DataType); 3] = [
    ("created_at", crate::scalar::DataType::Datetime),
    ("updated_at", crate::scalar::DataType::Datetime),
    ("created_by_execution_id", crate::scalar::DataType::Uuid),
];

/// The name of a raw table's order column, where it is an `integer` (contract §5).
pub const ORDER_COLUMN: &str = "order";
