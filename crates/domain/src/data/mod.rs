//! Rows and series: write, revert, read, query.

pub mod changes;
pub mod formula;
pub mod import;
pub mod query;
pub mod read;
pub mod revert;
pub mod write;
