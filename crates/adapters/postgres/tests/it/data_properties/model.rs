//! The model: everything in memory.

use std::sync::Arc;

use labdata_memory::{
    InMemoryApiKeyRepository, InMemoryCatalogStore, InMemoryDataStore, InMemoryExecutionRepository,
    InMemoryJobRepository, InMemoryTenancyRepository, Memory,
};
use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::{
    catalog::CatalogStore,
    data::DataStore,
    executions::ExecutionRepository,
    jobs::JobRepository,
    people::{ApiKeyRepository, tenancy::TenancyRepository},
};

/// All that writes depend on, in one memory.
pub(super) struct InMemory(Memory);

#[async_trait]
impl Harness for InMemory {
    async fn fresh() -> Self {
        Self(Memory::new())
    }
}

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
    TenancyRepository => InMemoryTenancyRepository,
    ApiKeyRepository => InMemoryApiKeyRepository,
    JobRepository => InMemoryJobRepository,
    ExecutionRepository => InMemoryExecutionRepository,
    CatalogStore => InMemoryCatalogStore,
    DataStore => InMemoryDataStore,
}
