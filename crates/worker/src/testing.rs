//! In-memory ports for the tests of this crate.

use std::sync::Arc;

use labdata_application::Ports;
use labdata_domain::notifications::Caps;
use labdata_memory::{
    FixedClock, InMemoryApiKeyRepository, InMemoryBlobStore, InMemoryCatalogStore,
    InMemoryDataStore, InMemoryExecutionRepository, InMemoryFileRepository, InMemoryIdempotency,
    InMemoryInstrumentRepository, InMemoryJobRepository, InMemoryNotificationRepository,
    InMemoryPeriodicTaskStore, InMemoryRunLogStore, InMemoryRunQueue, InMemoryStoreHealth,
    InMemoryTenancyRepository, InMemoryTriggerStore, InMemoryUrlSigner, Memory, NoQueryRunner,
    SequentialIds,
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
        executions: Arc::new(InMemoryExecutionRepository::new(&memory)),
        runs: Arc::new(InMemoryRunQueue::new(&memory)),
        run_logs: Arc::new(InMemoryRunLogStore::new(&memory)),
        triggers: Arc::new(InMemoryTriggerStore::new(&memory)),
        files: Arc::new(InMemoryFileRepository::new(&memory)),
        blobs: Arc::new(InMemoryBlobStore::new(&memory)),
        signer: Arc::new(InMemoryUrlSigner::new(&memory)),
        notifications: Arc::new(InMemoryNotificationRepository::new(&memory)),
        notification_caps: Caps::default(),
        idempotency: Arc::new(InMemoryIdempotency::new(&memory)),
        clock: Arc::new(FixedClock::default()),
        ids: Arc::new(SequentialIds::default()),
        key_cache: Arc::default(),
        health: Arc::new(InMemoryStoreHealth::new(&memory)),
        periodic_tasks: Arc::new(InMemoryPeriodicTaskStore::new(&memory)),
    }
}
