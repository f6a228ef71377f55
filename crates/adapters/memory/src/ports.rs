//! The fakes, composed.

use std::sync::Arc;

use labdata_ports::{Clock, Ports, Repositories};

use crate::{
    InMemoryAnnotationRepository, InMemoryApiKeyRepository, InMemoryAuditLog, InMemoryBlobStore,
    InMemoryCatalogStore, InMemoryDataStore, InMemoryDatasetRepository, InMemoryDependencyChecks,
    InMemoryDeviceRepository, InMemoryDiskReserve, InMemoryEventLog, InMemoryExecutionRepository,
    InMemoryFileRepository, InMemoryGroupRepository, InMemoryIdempotency,
    InMemoryInstrumentRepository, InMemoryInvitationRepository, InMemoryJobRepository,
    InMemoryModelRepository, InMemoryNotificationRepository, InMemoryOidcStore,
    InMemoryPeriodicTaskStore, InMemoryPredictor, InMemoryRunKeys, InMemorySavedViewRepository,
    InMemorySessionRepository, InMemorySqlLoginRepository, InMemoryStoreHealth,
    InMemoryTenancyRepository, InMemoryTrainingStore, InMemoryTrashStore, InMemoryTriggerStore,
    InMemoryUnits, InMemoryUrlSigner, InMemoryWebhookRepository, InMemoryWorkLogStore,
    InMemoryWorkQueue, InMemoryWriteSessions, Memory, NoQueryRunner, ScriptedFileReader,
    ScriptedPython, SequentialIds, ThreadTableReader,
};

/// The repositories over that memory.
#[must_use]
pub fn repositories(memory: &Memory) -> Repositories {
    Repositories {
        units: Arc::new(InMemoryUnits::new(memory)),
        audit: Arc::new(InMemoryAuditLog::new(memory)),
        api_keys: Arc::new(InMemoryApiKeyRepository::new(memory)),
        sessions: Arc::new(InMemorySessionRepository::new(memory)),
        oidc_store: Arc::new(InMemoryOidcStore::new(memory)),
        tenancy: Arc::new(InMemoryTenancyRepository::new(memory)),
        groups: Arc::new(InMemoryGroupRepository::new(memory)),
        invitations: Arc::new(InMemoryInvitationRepository::new(memory)),
        instruments: Arc::new(InMemoryInstrumentRepository::new(memory)),
        devices: Arc::new(InMemoryDeviceRepository::new(memory)),
        annotations: Arc::new(InMemoryAnnotationRepository::new(memory)),
        jobs: Arc::new(InMemoryJobRepository::new(memory)),
        catalog: Arc::new(InMemoryCatalogStore::new(memory)),
        data: Arc::new(InMemoryDataStore::new(memory)),
        saved_views: Arc::new(InMemorySavedViewRepository::new(memory)),
        events: Arc::new(InMemoryEventLog::new(memory)),
        executions: Arc::new(InMemoryExecutionRepository::new(memory)),
        work: Arc::new(InMemoryWorkQueue::new(memory)),
        work_logs: Arc::new(InMemoryWorkLogStore::new(memory)),
        run_keys: Arc::new(InMemoryRunKeys::new(memory)),
        triggers: Arc::new(InMemoryTriggerStore::new(memory)),
        files: Arc::new(InMemoryFileRepository::new(memory)),
        trash: Arc::new(InMemoryTrashStore::new(memory)),
        datasets: Arc::new(InMemoryDatasetRepository::new(memory)),
        models: Arc::new(InMemoryModelRepository::new(memory)),
        trainings: Arc::new(InMemoryTrainingStore::new(memory)),
        notifications: Arc::new(InMemoryNotificationRepository::new(memory)),
        write_sessions: Arc::new(InMemoryWriteSessions::new(memory)),
        sql_logins: Arc::new(InMemorySqlLoginRepository::new(memory)),
        webhooks: Arc::new(InMemoryWebhookRepository::new(memory)),
        health: Arc::new(InMemoryStoreHealth::new(memory)),
        periodic_tasks: Arc::new(InMemoryPeriodicTaskStore::new(memory)),
    }
}

/// All ports over that memory.
#[must_use]
pub fn ports(memory: &Memory, clock: Arc<dyn Clock>) -> Ports {
    let memory = &memory.on_clock(Arc::clone(&clock));
    Ports {
        repositories: repositories(memory),
        idempotency: Arc::new(InMemoryIdempotency::new(memory)),
        queries: Arc::new(NoQueryRunner),
        blobs: Arc::new(InMemoryBlobStore::new(memory)),
        signer: Arc::new(InMemoryUrlSigner::new(memory)),
        gateway: Arc::new(InMemoryUrlSigner::new(memory)),
        predictor: Arc::new(InMemoryPredictor::default()),
        python: Arc::new(ScriptedPython::default()),
        file_reader: Arc::new(ScriptedFileReader::default()),
        table_reader: Arc::new(ThreadTableReader),
        dependencies: Arc::new(InMemoryDependencyChecks::default()),
        disk_reserve: Arc::new(InMemoryDiskReserve::default()),
        clock,
        ids: Arc::new(SequentialIds::default()),
    }
}
