//! Runs the suites of `labdata-port-contracts` over PostgreSQL.

use std::sync::Arc;

use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::{
    agent::{AgentRunRepository, ChatRepository, WriteSessions},
    audit::AuditLog,
    catalog::CatalogStore,
    data::{DataStore, saved_views::SavedViewRepository},
    events::EventLog,
    executions::ExecutionRepository,
    files::FileRepository,
    idempotency::Idempotency,
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
use labdata_postgres::{
    Database, DatabaseSettings, PgAgentRunRepository, PgAnnotationRepository, PgApiKeyRepository,
    PgAuditLog, PgCatalogStore, PgChatRepository, PgDataStore, PgDatasetRepository,
    PgDeviceRepository, PgEventLog, PgExecutionRepository, PgFileRepository, PgGroupRepository,
    PgInstrumentRepository, PgInvitationRepository, PgJobRepository, PgModelRepository,
    PgNotificationRepository, PgOidcStore, PgPeriodicTaskStore, PgRunKeys, PgSavedViewRepository,
    PgSessionRepository, PgSqlLoginRepository, PgStore, PgStoreHealth, PgTenancyRepository,
    PgTrainingStore, PgTrashStore, PgTriggerStore, PgWebhookRepository, PgWorkLogStore,
    PgWorkQueue, PgWriteSessions, SearchLimits,
};
use labdata_test_database::TestDatabase;

/// All repositories over one database.
pub(crate) struct Postgres {
    database: Database,
    // Dropped after the pool, whose connections it would cut off.
    own: TestDatabase,
}

impl Postgres {
    /// Location of its database.
    pub(crate) fn url(&self) -> &str {
        self.own.url()
    }

    /// A fresh database, used with these settings.
    pub(crate) async fn with(settings: DatabaseSettings) -> Self {
        let own = TestDatabase::new().await;
        Self {
            database: Database::new(own.url(), settings).expect("a pool"),
            own,
        }
    }
}

#[async_trait]
impl Harness for Postgres {
    async fn fresh() -> Self {
        let settings = DatabaseSettings {
            max_connections: 8,
            ..DatabaseSettings::default()
        };
        Self::with(settings).await
    }
}

/// Makes the harness a subject of ports.
macro_rules! subjects {
    ($($port:ident => $repository:ident),+ $(,)?) => {
        $(
            impl Subject<dyn $port> for Postgres {
                fn subject(&self) -> Arc<dyn $port> {
                    Arc::new($repository::new(self.database.clone()))
                }
            }
        )+
    };
}

subjects! {
    AuditLog => PgAuditLog,
    TenancyRepository => PgTenancyRepository,
    GroupRepository => PgGroupRepository,
    InvitationRepository => PgInvitationRepository,
    SavedViewRepository => PgSavedViewRepository,
    SessionRepository => PgSessionRepository,
    ApiKeyRepository => PgApiKeyRepository,
    ChatRepository => PgChatRepository,
    AgentRunRepository => PgAgentRunRepository,
    WriteSessions => PgWriteSessions,
    DatasetRepository => PgDatasetRepository,
    ModelRepository => PgModelRepository,
    TrainingStore => PgTrainingStore,
    InstrumentRepository => PgInstrumentRepository,
    DeviceRepository => PgDeviceRepository,
    AnnotationRepository => PgAnnotationRepository,
    JobRepository => PgJobRepository,
    TriggerStore => PgTriggerStore,
    EventLog => PgEventLog,
    ExecutionRepository => PgExecutionRepository,
    WorkQueue => PgWorkQueue,
    WorkLogStore => PgWorkLogStore,
    RunKeys => PgRunKeys,
    NotificationRepository => PgNotificationRepository,
    SqlLoginRepository => PgSqlLoginRepository,
    WebhookRepository => PgWebhookRepository,
    OidcStore => PgOidcStore,
    PeriodicTaskStore => PgPeriodicTaskStore,
    StoreHealth => PgStoreHealth,
    CatalogStore => PgCatalogStore,
    TrashStore => PgTrashStore,
}

/// Limits so small that the few files of a clause take every step of a search.
const SMALL: SearchLimits = SearchLimits {
    walked: 2,
    found: 1,
    sampled: 20,
    frequent: 2,
};

impl Subject<dyn FileRepository> for Postgres {
    fn subject(&self) -> Arc<dyn FileRepository> {
        let files = PgFileRepository::new(self.database.clone());
        Arc::new(files.with_search_limits(SMALL))
    }
}

impl Subject<dyn Idempotency> for Postgres {
    fn subject(&self) -> Arc<dyn Idempotency> {
        let store = PgStore::new(self.database.clone(), self.database.clone());
        Arc::new(store.idempotency())
    }
}

impl Subject<dyn DataStore> for Postgres {
    fn subject(&self) -> Arc<dyn DataStore> {
        let catalog = PgCatalogStore::new(self.database.clone());
        Arc::new(PgDataStore::new(self.database.clone(), Arc::new(catalog)))
    }
}

labdata_port_contracts::store!(Postgres);
