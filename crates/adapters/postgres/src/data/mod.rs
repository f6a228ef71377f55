//! Rows and series of organizations' tables.

mod answer;
mod apply;
mod delete;
mod execution;
mod failure;
mod insert;
mod ledger;
mod modify;
mod outcome;
pub(crate) mod query;
mod read;
mod read_row;
mod read_series;
mod revert;
mod row_counts;
mod series;
mod small;
mod store;

pub(crate) use failure::Failure;
pub(crate) use read::platform_source;
pub use store::PgDataStore;
