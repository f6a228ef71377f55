//! Rows and series: write, revert, read, query.

pub mod as_of;
pub mod changes;
pub mod formula;
pub mod history;
pub mod import;
pub mod query;
pub mod read;
pub mod restore;
pub mod revert;
pub mod saved_view;
pub mod write;
