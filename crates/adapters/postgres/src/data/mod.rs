//! Rows and series of organizations' tables.

mod apply;
mod as_of;
mod changes;
mod chunk;
mod conditions;
mod context;
mod delete;
mod deletions;
mod execution;
mod failure;
mod first_insert;
pub(crate) mod history;
mod insert;
mod ledger;
mod look_up;
mod matching;
mod modify;
pub(crate) mod query;
mod read;
mod read_row;
mod read_series;
mod recreated;
mod restore;
mod revert;
mod row_counts;
mod row_images;
pub(crate) mod saved_views;
mod series;
mod small;
mod store;
mod stream;
mod upsert_locks;

pub(crate) use read::platform_source;
pub use store::PgDataStore;
