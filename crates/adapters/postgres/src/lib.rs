//! All SQL of the platform: diesel on PostgreSQL.
//!
//! **Invariants.** Row structs are not entities; a row that cannot become its entity is an error of
//! its own. Dynamic SQL is built from the chunks in `sql` alone, identifiers only through one quoting function.
//! No type of the driver leaves this crate.

mod agent;
mod audit;
mod catalog;
mod data;
mod database;
mod events;
mod executions;
mod files;
mod instruments;
mod jobs;
mod maintenance;
mod models;
mod notifications;
mod outward;
mod people;
mod schema;
mod store;
mod trash;
mod triggers;
mod work;

pub use agent::{PgAgentRunRepository, PgChatRepository, PgWriteSessions};
pub use audit::PgAuditLog;
pub use catalog::PgCatalogStore;
pub use data::PgDataStore;
pub use data::query::PgQueryRunner;
pub use data::saved_views::PgSavedViewRepository;
pub use database::idempotency::PgIdempotency;
pub use database::migrate::{
    DatabaseState, MIGRATIONS, inspect, knows_migration, migrate, revert_all_migrations,
};
pub use database::pool::{Database, DatabaseSettings};
pub use database::server::{InvalidDatabaseUrl, ServerAddress, check_database_url, server_address};
pub use events::PgEventLog;
pub use executions::PgExecutionRepository;
pub use files::PgFileRepository;
pub use files::list::SearchLimits;
pub use files::search_index::{FileSearch, prepare_file_search};
pub use instruments::{
    PgInstrumentRepository, devices::PgDeviceRepository, images::PgAnnotationRepository,
};
pub use jobs::PgJobRepository;
pub use maintenance::backup::{
    BackupError, NeededObject, Snapshot, is_empty, restore, server_major,
};
pub use maintenance::{PgPeriodicTaskStore, PgStoreHealth};
pub use models::PgDatasetRepository;
pub use models::records::PgModelRepository;
pub use models::trainings::PgTrainingStore;
pub use notifications::PgNotificationRepository;
pub use outward::{PgSqlLoginRepository, PgWebhookRepository};
pub use people::PgApiKeyRepository;
pub use people::groups::PgGroupRepository;
pub use people::invitations::PgInvitationRepository;
pub use people::oidc::PgOidcStore;
pub use people::sessions::PgSessionRepository;
pub use people::tenancy::PgTenancyRepository;
pub use store::PgStore;
pub use trash::PgTrashStore;
pub use triggers::PgTriggerStore;
pub use work::PgWorkQueue;
pub use work::keys::PgRunKeys;
pub use work::logs::PgWorkLogStore;
