//! All SQL of the platform: diesel on PostgreSQL.
//!
//! **Invariants.** Row structs are not entities; a row that cannot become its entity is an error of
//! its own. Dynamic SQL is built from the pieces in `sql` alone, identifiers only through one quoting function.
//! No type of the driver leaves this crate.

mod api_keys;
mod catalog;
mod combine;
mod data;
mod errors;
mod events;
mod execution_rows;
mod executions;
mod file_conditions;
mod file_index;
mod file_list;
mod file_rows;
mod file_sweep;
mod files;
mod idempotency;
mod instruments;
mod jobs;
mod listen;
mod migrate;
mod notification_emails;
mod notification_sends;
mod notifications;
mod paging;
mod pool;
mod prepared;
mod query;
mod run_logs;
mod runs;
mod schema;
mod sql;
mod tenancy;
mod transaction;
mod trigger_rows;
mod triggers;

pub use api_keys::PgApiKeyRepository;
pub use catalog::PgCatalogStore;
pub use data::PgDataStore;
pub use events::PgEventOutbox;
pub use executions::PgExecutionRepository;
pub use file_index::Segments;
pub use files::PgFileRepository;
pub use idempotency::PgIdempotency;
pub use instruments::PgInstrumentRepository;
pub use jobs::PgJobRepository;
pub use migrate::{MIGRATIONS, migrate, revert_all_migrations};
pub use notifications::PgNotificationRepository;
pub use pool::{Database, DatabaseSettings};
pub use query::PgQueryRunner;
pub use run_logs::PgRunLogStore;
pub use runs::PgRunQueue;
pub use tenancy::PgTenancyRepository;
pub use triggers::PgTriggerStore;
