//! Sends of notifications over HTTP at 8 connections, beside the least that PostgreSQL needs for a
//! durable transaction: one row into a table without an index, also at 8 connections, measured in
//! turn with it. The server is the real program on a separate database, with fsync on; all
//! senders are one user, so that they meet in both caps. Run with `just bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

#[path = "../support/mod.rs"]
mod support;

use std::time::Instant;

use futures::future::join_all;
use serde_json::{Value, json};

use support::{KEY, Server, percentile};

const CONNECTIONS: usize = 8;
const ROUNDS: usize = 6;
/// Sends of one connection in a round.
const SENDS: usize = 50;

struct Bench {
    server: Server,
}

impl Bench {
    /// Durations of the sends of a round.
    async fn sends(&self, round: usize) -> Vec<f64> {
        let senders = (0..CONNECTIONS).map(async |connection| {
            let client = reqwest::Client::new();
            let url = self.server.url("/notifications");
            let mut taken = Vec::new();
            for number in 0..SENDS {
                let body = json!({
                    "title": "Run done", "dedupe_key": format!("{round}/{connection}/{number}"),
                    "body": "All 96 wells were read.", "action_url": "/jobs/1",
                    "data": { "plate": number },
                });
                let start = Instant::now();
                let request = client.post(&url).bearer_auth(KEY).json(&body);
                let response: Value = request.send().await.unwrap().json().await.unwrap();
                taken.push(start.elapsed().as_secs_f64() * 1_000.0);
                assert_eq!(response["status"], "delivered", "{response}");
            }
            taken
        });
        join_all(senders).await.concat()
    }

    /// Durations of a round's transactions that store one row each.
    async fn transactions(&self) -> Vec<f64> {
        let writers = (0..CONNECTIONS).map(async |_| {
            let client = self.server.database().await;
            let insert = client
                .prepare("INSERT INTO floor VALUES (1)")
                .await
                .unwrap();
            let mut taken = Vec::new();
            for _ in 0..SENDS {
                let start = Instant::now();
                client.execute(&insert, &[]).await.unwrap();
                taken.push(start.elapsed().as_secs_f64() * 1_000.0);
            }
            taken
        });
        join_all(writers).await.concat()
    }
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` and clippy build this; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let server = Server::start(&[
        ("LABDATA_NOTIFICATIONS_PER_HOUR", "1000000"),
        ("LABDATA_NOTIFICATIONS_PER_DAY", "1000000"),
    ])
    .await;
    let bench = Bench { server };
    let client = bench.server.database().await;
    client
        .batch_execute("CREATE TABLE floor (n integer)")
        .await
        .unwrap();
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (transactions, sends) = (bench.transactions().await, bench.sends(round).await);
        // The first round only warms up.
        if round > 0 {
            floor.extend(transactions);
            ours.extend(sends);
        }
    }
    println!(
        "{:<44} {:>8} {:>8} {:>8}",
        "ms at 8 connections", "p50", "p95", "p99"
    );
    for (what, values) in [
        ("send a notification (asked: p50 ≤ 5)", &ours),
        ("floor: commit one row", &floor),
    ] {
        let [p50, p95, p99] = [50, 95, 99].map(|hundredths| percentile(values.clone(), hundredths));
        println!("{what:<44} {p50:>8.2} {p95:>8.2} {p99:>8.2}");
    }
    bench.server.stop().await;
}
