//! Rows and series: write, revert, read, query.

pub mod execution_changes;
pub mod export_table;
pub mod import_table;
pub mod query_data;
pub mod read_many_series;
pub mod read_rows;
pub mod read_series;
pub mod revert_execution;
pub mod write_data;
