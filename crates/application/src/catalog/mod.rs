//! Tables and their definitions.

mod audit_details;
pub mod define_table;
pub mod drop_column;
pub mod drop_table;
pub mod get_schema;
pub mod table_access;
pub(crate) mod visible;
