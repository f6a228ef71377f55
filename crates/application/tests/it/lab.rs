//! One organization on in-memory ports.

use std::sync::Arc;

use labdata_application::Ports;
use labdata_domain::{
    ids::ApiKeyId,
    notifications::Caps,
    people::{
        actor::Actor,
        scope::{Scope, Scopes},
        tenancy::{Organization, User},
    },
    storage::StorageQuota,
};
use labdata_memory::{
    FixedClock, InMemoryApiKeyRepository, InMemoryBlobStore, InMemoryCatalogStore,
    InMemoryDataStore, InMemoryDatasetRepository, InMemoryDependencyChecks, InMemoryDiskReserve,
    InMemoryEventLog, InMemoryExecutionRepository, InMemoryFileRepository, InMemoryIdempotency,
    InMemoryInstrumentRepository, InMemoryJobRepository, InMemoryModelRepository,
    InMemoryNotificationRepository, InMemoryPeriodicTaskStore, InMemoryPredictor,
    InMemoryRunLogStore, InMemoryRunQueue, InMemorySessionRepository, InMemoryStoreHealth,
    InMemoryTenancyRepository, InMemoryTrainingQueue, InMemoryTriggerStore, InMemoryUrlSigner,
    InMemoryWriteSessions, Memory, NoQueryRunner, ScriptedPython, SequentialIds,
};
use labdata_ports::Clock;

/// An empty store with one organization and one user.
pub(crate) struct Lab {
    pub(crate) ports: Ports,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) memory: Memory,
    organization: Organization,
    user: User,
}

impl Lab {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let memory = Memory::new();
        let ports = in_memory(&memory, displayed);
        let organization = Organization {
            id: ports.ids.next_id().into(),
            name: "lab".to_owned(),
            created_at: clock.now(),
        };
        let organization = ports
            .tenancy
            .ensure_organization(&organization)
            .await
            .unwrap();
        let user = User {
            id: ports.ids.next_id().into(),
            organization: organization.id,
            email: "ada@example.org".to_owned(),
            name: "Ada".to_owned(),
            created_at: clock.now(),
            disabled_at: None,
        };
        let user = ports.tenancy.ensure_user(&user).await.unwrap();
        Self {
            ports,
            clock,
            memory,
            organization,
            user,
        }
    }

    /// The user, with a key of these scopes.
    pub(crate) fn actor(&self, scopes: &[Scope]) -> Actor {
        Actor {
            organization: self.organization.id,
            user: self.user.id,
            api_key: ApiKeyId::new(self.ports.ids.next_id()),
            scopes: scopes.iter().copied().collect::<Scopes>(),
            execution: None,
        }
    }
}

fn in_memory(memory: &Memory, clock: Arc<dyn Clock>) -> Ports {
    let memory = memory.clone();
    Ports {
        api_keys: Arc::new(InMemoryApiKeyRepository::new(&memory)),
        tenancy: Arc::new(InMemoryTenancyRepository::new(&memory)),
        instruments: Arc::new(InMemoryInstrumentRepository::new(&memory)),
        jobs: Arc::new(InMemoryJobRepository::new(&memory)),
        catalog: Arc::new(InMemoryCatalogStore::new(&memory)),
        data: Arc::new(InMemoryDataStore::new(&memory)),
        events: Arc::new(InMemoryEventLog::new(&memory)),
        executions: Arc::new(InMemoryExecutionRepository::new(&memory)),
        runs: Arc::new(InMemoryRunQueue::new(&memory)),
        run_logs: Arc::new(InMemoryRunLogStore::new(&memory)),
        notifications: Arc::new(InMemoryNotificationRepository::new(&memory)),
        notification_caps: Caps::default(),
        triggers: Arc::new(InMemoryTriggerStore::new(&memory)),
        files: Arc::new(InMemoryFileRepository::new(&memory)),
        datasets: Arc::new(InMemoryDatasetRepository::new(&memory)),
        models: Arc::new(InMemoryModelRepository::new(&memory)),
        trainings: Arc::new(InMemoryTrainingQueue::new(&memory)),
        predictor: Arc::new(InMemoryPredictor::default()),
        python: Arc::new(ScriptedPython::default()),
        blobs: Arc::new(InMemoryBlobStore::new(&memory)),
        storage_quota: StorageQuota::UNLIMITED,
        ongoing_uploads: Arc::default(),
        queries: Arc::new(NoQueryRunner),
        signer: Arc::new(InMemoryUrlSigner::new(&memory)),
        gateway: Arc::new(InMemoryUrlSigner::new(&memory)),
        idempotency: Arc::new(InMemoryIdempotency::new(&memory)),
        health: Arc::new(InMemoryStoreHealth::new(&memory)),
        dependencies: Arc::new(InMemoryDependencyChecks::default()),
        disk_reserve: Arc::new(InMemoryDiskReserve::default()),
        periodic_tasks: Arc::new(InMemoryPeriodicTaskStore::new(&memory)),
        sessions: Arc::new(InMemorySessionRepository::new(&memory)),
        write_sessions: Arc::new(InMemoryWriteSessions::new(&memory)),
        clock,
        ids: Arc::new(SequentialIds::default()),
        key_cache: Arc::default(),
        served_models: Arc::default(),
        recent_checks: Arc::default(),
    }
}
