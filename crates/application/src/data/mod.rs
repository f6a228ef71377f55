//! Rows and series: write, revert, read, query.

mod as_of;
pub mod execution_changes;
pub mod export_table;
pub mod import_file;
pub mod import_table;
pub mod plans;
pub mod query_data;
pub mod read_many_series;
pub mod read_rows;
pub mod read_series;
pub mod revert_execution;
pub mod row_history;
pub mod saved_views;
pub mod sweep_history;
pub mod write_data;

#[cfg(test)]
mod tests;
