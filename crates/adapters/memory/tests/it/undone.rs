//! Random executions are undone.

use labdata_memory::Memory;
use labdata_port_contracts::data::random::{
    random_executions_are_undone, random_histories_are_read_and_undone,
};

use crate::contracts::InMemory;

#[tokio::test]
async fn random_executions_over_related_tables_are_undone() {
    for seed in 0..1000 {
        random_executions_are_undone(&InMemory(Memory::new()), seed).await;
    }
}

#[tokio::test]
async fn random_histories_are_read_as_they_stood_and_undone_as_if_they_had_never_been() {
    let mut among_others = 0;
    for seed in 0..1000 {
        let lab = InMemory(Memory::new());
        let is_clean = random_histories_are_read_and_undone(&lab, seed).await;
        among_others += usize::from(is_clean);
    }
    // Not only histories that an execution ends, or that conflicts stand against.
    assert!(among_others > 0);
}
