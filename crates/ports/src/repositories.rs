//! Ports of one store, which its adapter composes.

use std::{fmt, sync::Arc};

use crate::{
    agent::WriteSessions,
    audit::AuditLog,
    catalog::CatalogStore,
    data::{DataStore, saved_views::SavedViewRepository},
    events::EventLog,
    executions::ExecutionRepository,
    files::FileRepository,
    idempotency::Units,
    instruments::InstrumentRepository,
    instruments::devices::DeviceRepository,
    instruments::images::AnnotationRepository,
    jobs::JobRepository,
    maintenance::{PeriodicTaskStore, StoreHealth},
    models::{DatasetRepository, ModelRepository, TrainingStore},
    notifications::NotificationRepository,
    outward::sql_logins::SqlLoginRepository,
    outward::webhooks::WebhookRepository,
    people::ApiKeyRepository,
    people::groups::GroupRepository,
    people::invitations::InvitationRepository,
    people::oidc::OidcStore,
    people::sessions::SessionRepository,
    people::tenancy::TenancyRepository,
    trash::TrashStore,
    triggers::TriggerStore,
    work::{RunKeys, WorkQueue, logs::WorkLogStore},
};

/// Ports of one store. Each call is a separate transaction, unless they come from a
/// [`UnitOfWork`](crate::idempotency::UnitOfWork): then all calls are part of that.
#[derive(Clone)]
pub struct Repositories {
    /// Transactions that their caller holds.
    pub units: Arc<dyn Units>,
    /// API keys.
    pub api_keys: Arc<dyn ApiKeyRepository>,
    /// Sessions of browsers.
    pub sessions: Arc<dyn SessionRepository>,
    /// Records of sign-ins with an identity provider.
    pub oidc_store: Arc<dyn OidcStore>,
    /// Organizations and users.
    pub tenancy: Arc<dyn TenancyRepository>,
    /// Groups of users.
    pub groups: Arc<dyn GroupRepository>,
    /// Pending invitations.
    pub invitations: Arc<dyn InvitationRepository>,
    /// Instruments.
    pub instruments: Arc<dyn InstrumentRepository>,
    /// Annotations of images.
    pub annotations: Arc<dyn AnnotationRepository>,
    /// Devices of instruments.
    pub devices: Arc<dyn DeviceRepository>,
    /// Jobs.
    pub jobs: Arc<dyn JobRepository>,
    /// Definitions of tables.
    pub catalog: Arc<dyn CatalogStore>,
    /// Rows and series.
    pub data: Arc<dyn DataStore>,
    /// Saved views.
    pub saved_views: Arc<dyn SavedViewRepository>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// The event log.
    pub events: Arc<dyn EventLog>,
    /// Job executions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Work that waits, runs and trainings alike, and who holds what runs.
    pub work: Arc<dyn WorkQueue>,
    /// Logs of work.
    pub work_logs: Arc<dyn WorkLogStore>,
    /// Keys of runs.
    pub run_keys: Arc<dyn RunKeys>,
    /// Triggers of jobs, and what they wait for.
    pub triggers: Arc<dyn TriggerStore>,
    /// Records of files.
    pub files: Arc<dyn FileRepository>,
    /// Deleted files, tables and columns.
    pub trash: Arc<dyn TrashStore>,
    /// Records of datasets.
    pub datasets: Arc<dyn DatasetRepository>,
    /// Models and their versions.
    pub models: Arc<dyn ModelRepository>,
    /// Tokens and reports of trainings, and the backends that train.
    pub trainings: Arc<dyn TrainingStore>,
    /// Inboxes, preferences, and the outbox of e-mails.
    pub notifications: Arc<dyn NotificationRepository>,
    /// Executions under which assistants write.
    pub write_sessions: Arc<dyn WriteSessions>,
    /// SQL logins, and the roles behind them.
    pub sql_logins: Arc<dyn SqlLoginRepository>,
    /// Webhooks and their deliveries.
    pub webhooks: Arc<dyn WebhookRepository>,
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
