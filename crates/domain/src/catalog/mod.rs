//! An organization's tables: definitions, changes, snapshots.

mod access;
mod change;
mod column;
mod column_role;
mod compare;
mod conversion;
mod core_tables;
mod definition;
mod ensure;
mod generated_key;
mod identity;
mod name;
mod platform_tables;
mod refusal;
mod removal;
mod rename;
mod resolve;
mod snapshot;
mod system_columns;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod violation;

pub use access::TableAccess;
pub use change::{Alteration, CatalogChange, ColumnChange};
pub use column::{Column, ColumnRef, Columns};
pub use column_role::ColumnRole;
pub use conversion::MAX_INEXACT_VALUES;
pub use core_tables::{INSTRUMENT_CURVE, INSTRUMENT_MEASUREMENT, core_tables};
pub use definition::{ColumnDefinition, DefinitionMode, TableDefinition, missing_target};
pub use identity::TableIdentity;
pub(crate) use name::refuse_value;
pub use name::{InvalidName, Name, sql_name};
pub use platform_tables::{PlatformColumn, PlatformTable};
pub use refusal::CatalogRefusal;
pub use rename::ColumnRename;
pub use resolve::reserved_column_names;
pub use snapshot::{Catalog, CatalogVersion, HIDDEN_TABLE};
pub use system_columns::SystemColumn;
pub use table::{KeyedTable, ORDER_COLUMN, Origin, Owner, SemanticCategory, Table};
pub use unit::{UnitMatch, compare_unit, is_ucum, ucum_of, unit_besides_seconds};
pub use violation::{ViolatedKey, Violation};
