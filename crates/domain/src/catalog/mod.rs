//! An organization's tables: definitions, changes, snapshots.

mod change;
mod column;
mod conversion;
mod core_tables;
mod definition;
mod ensure;
mod name;
mod platform_tables;
mod refusal;
mod removal;
mod rename;
mod snapshot;
mod system_columns;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod violation;

pub use change::{Alteration, CatalogChange, ColumnChange};
pub use column::{Column, ColumnRef, Columns};
pub use conversion::MAX_INEXACT_VALUES;
pub use core_tables::{INSTRUMENT_CURVE, INSTRUMENT_MEASUREMENT, core_tables};
pub use definition::{ColumnDefinition, DefinitionMode, TableDefinition, missing_target};
pub(crate) use name::refuse_value;
pub use name::{InvalidName, Name, sql_name};
pub use platform_tables::{PlatformColumn, PlatformTable};
pub use refusal::CatalogRefusal;
pub use removal::ColumnRole;
pub use rename::ColumnRename;
pub use snapshot::{Catalog, CatalogVersion, HIDDEN_TABLE};
pub use system_columns::SystemColumn;
pub use table::{KeyedTable, ORDER_COLUMN, Origin, Owner, SemanticCategory, Table};
pub use unit::is_ucum;
pub use violation::{ViolatedKey, Violation};
