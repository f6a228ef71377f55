//! `/api/v1/tables`: definitions of the organization's tables.

pub mod delete;
pub mod delete_column;
pub mod export;
pub mod put;
pub mod schema;
pub mod table_view;
