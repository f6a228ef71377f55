//! Random executions are undone.

use labdata_port_contracts::{Harness, data::restore::random_executions_are_undone};

use crate::contracts::Postgres;

/// As many seeds as fit in about a minute; `LABDATA_UNDO_SEEDS` asks for more.
const SEEDS: u64 = 40;

#[tokio::test]
async fn random_executions_over_related_tables_are_undone() {
    let seeds = std::env::var("LABDATA_UNDO_SEEDS").ok();
    let seeds = seeds.map_or(SEEDS, |seeds| seeds.parse().expect("a number of seeds"));
    let postgres = Postgres::fresh().await;
    for seed in 0..seeds {
        random_executions_are_undone(&postgres, seed).await;
    }
}
