//! The repositories of one database, composed.

use std::sync::Arc;

use labdata_ports::Repositories;

use crate::database::units::BindRepositories;

use crate::{
    Database, PgAnnotationRepository, PgApiKeyRepository, PgAuditLog, PgCatalogStore, PgDataStore,
    PgDatasetRepository, PgDeviceRepository, PgEventLog, PgExecutionRepository, PgFileRepository,
    PgGroupRepository, PgIdempotency, PgInstrumentRepository, PgInvitationRepository,
    PgJobRepository, PgModelRepository, PgNotificationRepository, PgOidcStore, PgPeriodicTaskStore,
    PgRunKeys, PgSavedViewRepository, PgSessionRepository, PgSqlLoginRepository, PgStoreHealth,
    PgTenancyRepository, PgTrainingStore, PgTrashStore, PgTriggerStore, PgWebhookRepository,
    PgWorkLogStore, PgWorkQueue, PgWriteSessions, database::units::PgUnits,
};

/// The database as a store: what its repositories share, however often they are composed.
#[derive(Clone)]
pub struct PgStore {
    database: Database,
    authentication: Database,
    catalog: Arc<PgCatalogStore>,
    data: Arc<PgDataStore>,
    notifications: PgNotificationRepository,
}

impl std::fmt::Debug for PgStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgStore")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl PgStore {
    /// A store in that database. Keys and sessions are checked over `authentication`, connections to the
    /// same database that no other work can use up.
    #[must_use]
    pub fn new(database: Database, authentication: Database) -> Self {
        let catalog = Arc::new(PgCatalogStore::new(database.clone()));
        Self {
            data: Arc::new(PgDataStore::new(database.clone(), Arc::clone(&catalog))),
            catalog,
            notifications: PgNotificationRepository::new(database.clone()),
            authentication,
            database,
        }
    }

    /// The repositories; each call is a transaction.
    #[must_use]
    pub fn repositories(&self) -> Repositories {
        self.compose(&self.database, &self.authentication)
    }

    /// Keys of idempotent requests, whose units of work are transactions of this store.
    #[must_use]
    pub fn idempotency(&self) -> PgIdempotency {
        PgIdempotency::new(Arc::new(self.clone()))
    }

    fn compose(&self, database: &Database, authentication: &Database) -> Repositories {
        let catalog = Arc::new(self.catalog.on(database.clone()));
        Repositories {
            units: Arc::new(PgUnits::new(Arc::new(self.clone()), database.clone())),
            audit: Arc::new(PgAuditLog::new(database.clone())),
            api_keys: Arc::new(PgApiKeyRepository::new(authentication.clone())),
            sessions: Arc::new(PgSessionRepository::new(authentication.clone())),
            oidc_store: Arc::new(PgOidcStore::new(database.clone())),
            tenancy: Arc::new(PgTenancyRepository::new(database.clone())),
            groups: Arc::new(PgGroupRepository::new(database.clone())),
            invitations: Arc::new(PgInvitationRepository::new(authentication.clone())),
            instruments: Arc::new(PgInstrumentRepository::new(database.clone())),
            devices: Arc::new(PgDeviceRepository::new(database.clone())),
            annotations: Arc::new(PgAnnotationRepository::new(database.clone())),
            jobs: Arc::new(PgJobRepository::new(database.clone())),
            data: Arc::new(self.data.on(database.clone(), Arc::clone(&catalog))),
            catalog,
            saved_views: Arc::new(PgSavedViewRepository::new(database.clone())),
            events: Arc::new(PgEventLog::new(database.clone())),
            executions: Arc::new(PgExecutionRepository::new(database.clone())),
            work: Arc::new(PgWorkQueue::new(database.clone())),
            work_logs: Arc::new(PgWorkLogStore::new(database.clone())),
            run_keys: Arc::new(PgRunKeys::new(database.clone())),
            triggers: Arc::new(PgTriggerStore::new(database.clone())),
            files: Arc::new(PgFileRepository::new(database.clone())),
            trash: Arc::new(PgTrashStore::new(database.clone())),
            datasets: Arc::new(PgDatasetRepository::new(database.clone())),
            models: Arc::new(PgModelRepository::new(database.clone())),
            trainings: Arc::new(PgTrainingStore::new(database.clone())),
            notifications: Arc::new(self.notifications.on(database.clone())),
            write_sessions: Arc::new(PgWriteSessions::new(database.clone())),
            sql_logins: Arc::new(PgSqlLoginRepository::new(database.clone())),
            webhooks: Arc::new(PgWebhookRepository::new(database.clone())),
            health: Arc::new(PgStoreHealth::new(database.clone())),
            periodic_tasks: Arc::new(PgPeriodicTaskStore::new(database.clone())),
        }
    }
}

impl BindRepositories for PgStore {
    fn database(&self) -> &Database {
        &self.database
    }

    fn bound_to(&self, database: &Database) -> Repositories {
        // Keys take part in the transaction too: a pool of their own would not see its changes.
        self.compose(database, database)
    }
}
