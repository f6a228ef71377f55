//! In-memory ports, and what is in them, for the tests of this crate.

use std::sync::Arc;

use labdata_application::{
    Ports,
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
    },
    work::run_job::{RunJob, run_job},
};
use labdata_domain::{
    ids::ApiKeyId,
    notifications::Caps,
    people::{
        actor::Actor,
        scope::Scope,
        tenancy::{Organization, User},
    },
    storage::StorageQuota,
    triggers::TriggerChange,
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

/// Ports over an empty store, with a clock that stands still.
pub(crate) fn in_memory() -> Ports {
    let memory = Memory::new();
    Ports {
        api_keys: Arc::new(InMemoryApiKeyRepository::new(&memory)),
        tenancy: Arc::new(InMemoryTenancyRepository::new(&memory)),
        instruments: Arc::new(InMemoryInstrumentRepository::new(&memory)),
        jobs: Arc::new(InMemoryJobRepository::new(&memory)),
        catalog: Arc::new(InMemoryCatalogStore::new(&memory)),
        data: Arc::new(InMemoryDataStore::new(&memory)),
        queries: Arc::new(NoQueryRunner),
        events: Arc::new(InMemoryEventLog::new(&memory)),
        executions: Arc::new(InMemoryExecutionRepository::new(&memory)),
        runs: Arc::new(InMemoryRunQueue::new(&memory)),
        run_logs: Arc::new(InMemoryRunLogStore::new(&memory)),
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
        signer: Arc::new(InMemoryUrlSigner::new(&memory)),
        gateway: Arc::new(InMemoryUrlSigner::new(&memory)),
        notifications: Arc::new(InMemoryNotificationRepository::new(&memory)),
        notification_caps: Caps::default(),
        idempotency: Arc::new(InMemoryIdempotency::new(&memory)),
        sessions: Arc::new(InMemorySessionRepository::new(&memory)),
        write_sessions: Arc::new(InMemoryWriteSessions::new(&memory)),
        clock: Arc::new(FixedClock::default()),
        ids: Arc::new(SequentialIds::default()),
        key_cache: Arc::default(),
        served_models: Arc::default(),
        recent_checks: Arc::default(),
        health: Arc::new(InMemoryStoreHealth::new(&memory)),
        dependencies: Arc::new(InMemoryDependencyChecks::default()),
        disk_reserve: Arc::new(InMemoryDiskReserve::default()),
        periodic_tasks: Arc::new(InMemoryPeriodicTaskStore::new(&memory)),
    }
}

/// A person of a new organization.
pub(crate) async fn actor(ports: &Ports) -> Actor {
    let organization = Organization {
        id: ports.ids.next_id().into(),
        name: "lab".to_owned(),
        created_at: ports.clock.now(),
    };
    let user = User {
        id: ports.ids.next_id().into(),
        organization: organization.id,
        email: "ada@example.org".to_owned(),
        name: "Ada".to_owned(),
        created_at: ports.clock.now(),
        disabled_at: None,
    };
    ports
        .tenancy
        .ensure_organization(&organization)
        .await
        .unwrap();
    ports.tenancy.ensure_user(&user).await.unwrap();
    Actor {
        organization: organization.id,
        user: user.id,
        api_key: ApiKeyId::new(ports.ids.next_id()),
        scopes: Scope::ALL.into_iter().collect(),
        execution: None,
    }
}

/// Queues a run of a new job.
pub(crate) async fn queue_run(ports: &Ports, actor: &Actor) {
    let job = CreateJob {
        name: "stuck".to_owned(),
        script: CheckedScript::check("print(1)".to_owned()).await,
        description: None,
        parameters: Vec::new(),
        trigger: TriggerChange::default(),
    };
    let job = create_job(ports, actor, job).await.unwrap();
    run_job(ports, actor, job.id, RunJob::default())
        .await
        .unwrap();
}
