//! Everything outside that the use cases need, in one place.

use std::sync::Arc;

use labdata_domain::{notifications::Caps, storage::StorageQuota};
use labdata_ports::{
    Clock, IdSource,
    agent::{PythonSandbox, WriteSessions},
    catalog::CatalogStore,
    data::{DataStore, query::QueryRunner},
    events::EventLog,
    executions::ExecutionRepository,
    files::{
        FileRepository,
        blob::{BlobStore, UrlSigner},
    },
    idempotency::Idempotency,
    instruments::InstrumentRepository,
    jobs::JobRepository,
    maintenance::{DependencyChecks, DiskReserve, PeriodicTaskStore, StoreHealth},
    models::{DatasetRepository, ModelRepository, Predictor, TrainingQueue},
    notifications::NotificationRepository,
    people::{ApiKeyRepository, sessions::SessionRepository, tenancy::TenancyRepository},
    triggers::TriggerStore,
    work::{RunQueue, logs::RunLogStore},
};

use crate::{
    files::ongoing_uploads::OngoingUploads, maintenance::check_dependencies::RecentChecks,
    models::prediction::ServedModels, people::key_cache::KeyCache,
};

/// The ports, injected once by the composition root. Every use case takes it by reference, first.
#[derive(Clone)]
pub struct Ports {
    /// API keys.
    pub api_keys: Arc<dyn ApiKeyRepository>,
    /// Sessions of browsers.
    pub sessions: Arc<dyn SessionRepository>,
    /// Organizations and users.
    pub tenancy: Arc<dyn TenancyRepository>,
    /// Instruments.
    pub instruments: Arc<dyn InstrumentRepository>,
    /// Jobs.
    pub jobs: Arc<dyn JobRepository>,
    /// Definitions of tables.
    pub catalog: Arc<dyn CatalogStore>,
    /// Rows and series.
    pub data: Arc<dyn DataStore>,
    /// Queries in SQL.
    pub queries: Arc<dyn QueryRunner>,
    /// The event log.
    pub events: Arc<dyn EventLog>,
    /// Job executions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Runs on the platform: their queue, and who holds them.
    pub runs: Arc<dyn RunQueue>,
    /// Logs of runs.
    pub run_logs: Arc<dyn RunLogStore>,
    /// Triggers of jobs, and what they wait for.
    pub triggers: Arc<dyn TriggerStore>,
    /// Records of files.
    pub files: Arc<dyn FileRepository>,
    /// Records of datasets.
    pub datasets: Arc<dyn DatasetRepository>,
    /// Models and their versions.
    pub models: Arc<dyn ModelRepository>,
    /// Trainings: their queue, and who holds them.
    pub trainings: Arc<dyn TrainingQueue>,
    /// Trained models that predict.
    pub predictor: Arc<dyn Predictor>,
    /// Python snippets of the agent.
    pub python: Arc<dyn PythonSandbox>,
    /// Bytes of files and datasets.
    pub blobs: Arc<dyn BlobStore>,
    /// Quota of files per organization, from the settings.
    pub storage_quota: StorageQuota,
    /// Uploads under way; `Arc::default()`, shared by all of one process.
    pub ongoing_uploads: Arc<OngoingUploads>,
    /// URLs that carry their own permission.
    pub signer: Arc<dyn UrlSigner>,
    /// URLs of the platform that carry their own permission, also where `signer` makes those of a cloud:
    /// for processes that reach nothing but the platform.
    pub gateway: Arc<dyn UrlSigner>,
    /// Inboxes, preferences, and the outbox of e-mails.
    pub notifications: Arc<dyn NotificationRepository>,
    /// Caps on notifications, from the settings.
    pub notification_caps: Caps,
    /// Requests that have their effect once.
    pub idempotency: Arc<dyn Idempotency>,
    /// Health and figures of the store.
    pub health: Arc<dyn StoreHealth>,
    /// State of what this server depends on.
    pub dependencies: Arc<dyn DependencyChecks>,
    /// Reserve of disk space.
    pub disk_reserve: Arc<dyn DiskReserve>,
    /// Schedule of periodic tasks.
    pub periodic_tasks: Arc<dyn PeriodicTaskStore>,
    /// Executions under which assistants write.
    pub write_sessions: Arc<dyn WriteSessions>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Identifiers and random bytes.
    pub ids: Arc<dyn IdSource>,
    /// Keys that were checked a moment ago; `Arc::default()`, shared by all of one process.
    pub key_cache: Arc<KeyCache>,
    /// Models that predicted a moment ago; `Arc::default()`, shared by all of one process.
    pub served_models: Arc<ServedModels>,
    /// Checks of dependencies a moment ago; `Arc::default()`, shared by all of one process.
    pub recent_checks: Arc<RecentChecks>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}
