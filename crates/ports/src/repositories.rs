//! Ports of one store, which its adapter composes.

use std::{fmt, sync::Arc};

use crate::{
    agent::WriteSessions,
    catalog::CatalogStore,
    data::DataStore,
    events::EventLog,
    executions::ExecutionRepository,
    files::FileRepository,
    instruments::InstrumentRepository,
    jobs::JobRepository,
    maintenance::{PeriodicTaskStore, StoreHealth},
    models::{DatasetRepository, ModelRepository, TrainingQueue},
    notifications::NotificationRepository,
    people::{ApiKeyRepository, sessions::SessionRepository, tenancy::TenancyRepository},
    triggers::TriggerStore,
    work::{RunQueue, logs::RunLogStore},
};

/// Ports of one store. Each call is a separate transaction, unless they come from a
/// [`UnitOfWork`](crate::idempotency::UnitOfWork): then all calls are part of that.
#[derive(Clone)]
pub struct Repositories {
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
    /// Inboxes, preferences, and the outbox of e-mails.
    pub notifications: Arc<dyn NotificationRepository>,
    /// Executions under which assistants write.
    pub write_sessions: Arc<dyn WriteSessions>,
    /// Health and figures of the store.
    pub health: Arc<dyn StoreHealth>,
    /// Schedule of periodic tasks.
    pub periodic_tasks: Arc<dyn PeriodicTaskStore>,
}

impl fmt::Debug for Repositories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repositories").finish_non_exhaustive()
    }
}
