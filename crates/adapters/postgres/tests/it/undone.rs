//! Random executions are undone.

use labdata_port_contracts::{
    Harness,
    data::random::{random_executions_are_undone, random_histories_are_read_and_undone},
};

use crate::contracts::Postgres;

/// As many seeds as fit in about a minute; `LABDATA_UNDO_SEEDS` asks for more.
const SEEDS: u64 = 40;

fn seeds(default: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("LABDATA_UNDO_SEEDS").ok();
    0..seeds.map_or(default, |seeds| seeds.parse().expect("a number of seeds"))
}

#[tokio::test]
async fn random_executions_over_related_tables_are_undone() {
    let postgres = Postgres::fresh().await;
    for seed in seeds(SEEDS) {
        random_executions_are_undone(&postgres, seed).await;
    }
}

#[tokio::test]
async fn random_histories_are_read_as_they_stood_and_undone_as_if_they_had_never_been() {
    let postgres = Postgres::fresh().await;
    for seed in seeds(SEEDS / 2) {
        random_histories_are_read_and_undone(&postgres, seed).await;
    }
}
