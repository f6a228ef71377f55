//! All SQL of the platform: diesel on PostgreSQL.
//!
//! **Invariants.** Row structs are not entities; a row that cannot become its entity is an error of
//! its own. Dynamic SQL is built in [`sql`] alone, identifiers only through one quoting function.
//! No type of the driver leaves this crate.

mod catalog;
mod data;
mod migrate;
mod pool;
mod sql;
mod transaction;

pub use catalog::PgCatalogStore;
pub use data::PgDataStore;
pub use migrate::{MIGRATIONS, migrate};
pub use pool::{Database, DatabaseSettings};
