//! Random executions are undone.

use labdata_memory::Memory;
use labdata_port_contracts::data::restore::random_executions_are_undone;

use crate::contracts::InMemory;

#[tokio::test]
async fn random_executions_over_related_tables_are_undone() {
    for seed in 0..1000 {
        random_executions_are_undone(&InMemory(Memory::new()), seed).await;
    }
}
