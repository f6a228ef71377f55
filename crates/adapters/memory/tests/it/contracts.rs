//! Runs the suites of `labdata-port-contracts` over the fakes.

use std::sync::Arc;

use labdata_domain::agent::{BrokenStream, ModelFailure, ModelResponse, PythonOutcome};
use labdata_memory::{
    InMemoryAgentRunRepository, InMemoryAnnotationRepository, InMemoryApiKeyRepository,
    InMemoryAuditLog, InMemoryBlobStore, InMemoryCatalogStore, InMemoryChatRepository,
    InMemoryDataStore, InMemoryDatasetRepository, InMemoryDependencyChecks,
    InMemoryDeviceRepository, InMemoryEventLog, InMemoryExecutionRepository,
    InMemoryFileRepository, InMemoryGroupRepository, InMemoryIdempotency,
    InMemoryInstrumentRepository, InMemoryInvitationRepository, InMemoryJobRepository,
    InMemoryJobRunner, InMemoryModelRepository, InMemoryNotificationRepository, InMemoryOidcStore,
    InMemoryPeriodicTaskStore, InMemoryPredictor, InMemoryRunKeys, InMemorySavedViewRepository,
    InMemorySessionRepository, InMemorySqlLoginRepository, InMemoryStoreHealth,
    InMemoryTenancyRepository, InMemoryTrainingStore, InMemoryTrashStore, InMemoryTriggerStore,
    InMemoryWebhookRepository, InMemoryWorkLogStore, InMemoryWorkQueue, InMemoryWriteSessions,
    Memory, ScriptedModel, ScriptedPython, ScriptedResponse, ThreadTableReader,
};
use labdata_port_contracts::{
    Harness, Subject,
    agent::{language_model::Scripted, python::Snippets},
    async_trait,
    models::predictions::Predictors,
};
use labdata_ports::{
    agent::{AgentRunRepository, ChatRepository, LanguageModel, PythonSandbox, WriteSessions},
    audit::AuditLog,
    catalog::CatalogStore,
    data::{DataStore, saved_views::SavedViewRepository},
    events::EventLog,
    executions::ExecutionRepository,
    files::{FileRepository, blob::BlobStore},
    idempotency::Idempotency,
    instruments::InstrumentRepository,
    instruments::devices::DeviceRepository,
    instruments::images::AnnotationRepository,
    jobs::JobRepository,
    maintenance::{DependencyChecks, PeriodicTaskStore, StoreHealth},
    models::{DatasetRepository, ModelRepository, Predictor, TrainingStore},
    notifications::NotificationRepository,
    outward::sql_logins::SqlLoginRepository,
    outward::webhooks::WebhookRepository,
    people::ApiKeyRepository,
    people::groups::GroupRepository,
    people::invitations::InvitationRepository,
    people::oidc::OidcStore,
    people::sessions::SessionRepository,
    people::tenancy::TenancyRepository,
    reading::TableReader,
    trash::TrashStore,
    triggers::TriggerStore,
    work::{RunKeys, WorkQueue, logs::WorkLogStore, runner::JobRunner},
};

/// All fakes over one store.
pub(crate) struct InMemory(pub(crate) Memory);

#[async_trait]
impl Harness for InMemory {
    async fn fresh() -> Self {
        Self(Memory::new())
    }
}

/// Makes the harness a subject of ports.
macro_rules! subjects {
    ($($port:ident => $fake:ident),+ $(,)?) => {
        $(
            impl Subject<dyn $port> for InMemory {
                fn subject(&self) -> Arc<dyn $port> {
                    Arc::new($fake::new(&self.0))
                }
            }
        )+
    };
}

subjects! {
    AuditLog => InMemoryAuditLog,
    TenancyRepository => InMemoryTenancyRepository,
    GroupRepository => InMemoryGroupRepository,
    InvitationRepository => InMemoryInvitationRepository,
    SavedViewRepository => InMemorySavedViewRepository,
    SessionRepository => InMemorySessionRepository,
    ApiKeyRepository => InMemoryApiKeyRepository,
    ChatRepository => InMemoryChatRepository,
    AgentRunRepository => InMemoryAgentRunRepository,
    WriteSessions => InMemoryWriteSessions,
    Idempotency => InMemoryIdempotency,
    DatasetRepository => InMemoryDatasetRepository,
    ModelRepository => InMemoryModelRepository,
    TrainingStore => InMemoryTrainingStore,
    InstrumentRepository => InMemoryInstrumentRepository,
    DeviceRepository => InMemoryDeviceRepository,
    AnnotationRepository => InMemoryAnnotationRepository,
    JobRepository => InMemoryJobRepository,
    TriggerStore => InMemoryTriggerStore,
    EventLog => InMemoryEventLog,
    ExecutionRepository => InMemoryExecutionRepository,
    WorkQueue => InMemoryWorkQueue,
    WorkLogStore => InMemoryWorkLogStore,
    RunKeys => InMemoryRunKeys,
    CatalogStore => InMemoryCatalogStore,
    TrashStore => InMemoryTrashStore,
    DataStore => InMemoryDataStore,
    BlobStore => InMemoryBlobStore,
    FileRepository => InMemoryFileRepository,
    NotificationRepository => InMemoryNotificationRepository,
    SqlLoginRepository => InMemorySqlLoginRepository,
    WebhookRepository => InMemoryWebhookRepository,
    OidcStore => InMemoryOidcStore,
    PeriodicTaskStore => InMemoryPeriodicTaskStore,
    StoreHealth => InMemoryStoreHealth,
}

/// A separate runner: runs are not part of the store.
struct Runs(InMemoryJobRunner);

#[async_trait]
impl Harness for Runs {
    async fn fresh() -> Self {
        Self(InMemoryJobRunner::new())
    }
}

impl Subject<dyn JobRunner> for Runs {
    fn subject(&self) -> Arc<dyn JobRunner> {
        Arc::new(self.0.clone())
    }
}

impl Subject<dyn DependencyChecks> for InMemory {
    fn subject(&self) -> Arc<dyn DependencyChecks> {
        Arc::new(InMemoryDependencyChecks::default())
    }
}

/// A scripted model for this harness.
struct Model(ScriptedModel);

#[async_trait]
impl Harness for Model {
    async fn fresh() -> Self {
        Self(ScriptedModel::default())
    }
}

impl Subject<dyn LanguageModel> for Model {
    fn subject(&self) -> Arc<dyn LanguageModel> {
        Arc::new(self.0.clone())
    }
}

#[async_trait]
impl Scripted for Model {
    async fn will_respond(&self, response: ModelResponse) {
        self.0.then(ScriptedResponse::Response(response));
    }

    async fn will_refuse(&self) {
        self.0.then(ScriptedResponse::Refuse(ModelFailure::Refused {
            status: 429,
            retry_after: Some(30),
            message: "slow down".to_owned(),
        }));
    }

    async fn will_break_off(&self, text: &str) {
        let failure = ModelFailure::Broken(BrokenStream::NoEnd);
        self.0
            .then(ScriptedResponse::Fail(text.to_owned(), failure));
    }
}

/// Predictor without models.
struct AddsUp(Arc<InMemoryPredictor>);

#[async_trait]
impl Harness for AddsUp {
    async fn fresh() -> Self {
        Self(Arc::default())
    }
}

impl Subject<dyn Predictor> for AddsUp {
    fn subject(&self) -> Arc<dyn Predictor> {
        self.0.clone()
    }
}

#[async_trait]
impl Predictors for AddsUp {
    async fn pause(&self) {
        tokio::task::yield_now().await;
    }
}

labdata_port_contracts::predictions!(AddsUp);
labdata_port_contracts::dependency_checks!(InMemory);
labdata_port_contracts::language_model!(Model);

/// A sandbox for this harness that runs nothing.
struct Python(ScriptedPython);

#[async_trait]
impl Harness for Python {
    async fn fresh() -> Self {
        Self(ScriptedPython::default())
    }
}

impl Subject<dyn PythonSandbox> for Python {
    fn subject(&self) -> Arc<dyn PythonSandbox> {
        Arc::new(self.0.clone())
    }
}

#[async_trait]
impl Snippets for Python {
    async fn will_end(&self, outcome: PythonOutcome) {
        self.0.then(outcome);
    }
}

impl Subject<dyn TableReader> for InMemory {
    fn subject(&self) -> Arc<dyn TableReader> {
        Arc::new(ThreadTableReader)
    }
}

labdata_port_contracts::python!(Python);
labdata_port_contracts::table_reader!(InMemory);
labdata_port_contracts::store!(InMemory);
labdata_port_contracts::blob!(InMemory);
labdata_port_contracts::runs!(Runs);
