//! Sends of notifications over HTTP at 8 connections, beside the least that PostgreSQL needs for a
//! durable transaction: one row into a table without an index, also at 8 connections, measured in
//! turn with it. The server is the real program on a database of its own, with fsync on; all
//! senders are one user, so that they meet in both caps. Run with `just bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures::future::join_all;
use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_postgres::NoTls;

const KEY: &str = "ldk_benchkey_0123456789abcdefghijklmnopqrstuv";
const CONNECTIONS: usize = 8;
const ROUNDS: usize = 6;
/// Sends of one connection in a round.
const SENDS: usize = 50;

struct Bench {
    url: String,
    server: Child,
    postgres: EmbeddedPostgres,
    _directory: TempDir,
}

impl Bench {
    async fn start() -> Self {
        // On the disk that the figures are about, not in a memory file system.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let postgres = EmbeddedPostgres::start(Settings {
            data_dir: directory.path().to_owned(),
            bin_dir: None,
            durability: Durability::Durable,
        })
        .await
        .unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_labdata"))
            .arg("serve")
            .env("DATABASE_URL", postgres.database_url())
            .env("LABDATA_DATA_DIR", directory.path())
            .env("LABDATA_BIND", "127.0.0.1:0")
            .env("LABDATA_BOOTSTRAP_KEY", KEY)
            .env("LABDATA_NOTIFICATIONS_PER_HOUR", "1000000")
            .env("LABDATA_NOTIFICATIONS_PER_DAY", "1000000")
            .env("LABDATA_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let line = lines
            .map(Result::unwrap)
            .find(|line| line.contains("http://"))
            .unwrap();
        let base = line[line.find("http://").unwrap()..]
            .trim_end_matches('/')
            .to_owned();
        let url = format!("{base}/api/v1/notifications");
        Self {
            url,
            server,
            postgres,
            _directory: directory,
        }
    }

    /// What each send of a round takes.
    async fn sends(&self, round: usize) -> Vec<Duration> {
        let senders = (0..CONNECTIONS).map(async |connection| {
            let client = reqwest::Client::new();
            let mut taken = Vec::new();
            for number in 0..SENDS {
                let body = json!({
                    "title": "Run done", "dedupe_key": format!("{round}/{connection}/{number}"),
                    "body": "All 96 wells were read.", "action_url": "/jobs/1",
                    "data": { "plate": number },
                });
                let start = Instant::now();
                let request = client.post(&self.url).bearer_auth(KEY).json(&body);
                let answer: Value = request.send().await.unwrap().json().await.unwrap();
                taken.push(start.elapsed());
                assert_eq!(answer["status"], "delivered", "{answer}");
            }
            taken
        });
        join_all(senders).await.concat()
    }

    /// What each transaction of a round takes that stores one row.
    async fn transactions(&self) -> Vec<Duration> {
        let writers = (0..CONNECTIONS).map(async |_| {
            let (client, connection) = tokio_postgres::connect(self.postgres.database_url(), NoTls)
                .await
                .unwrap();
            tokio::spawn(connection);
            let insert = client
                .prepare("INSERT INTO floor VALUES (1)")
                .await
                .unwrap();
            let mut taken = Vec::new();
            for _ in 0..SENDS {
                let start = Instant::now();
                client.execute(&insert, &[]).await.unwrap();
                taken.push(start.elapsed());
            }
            taken
        });
        join_all(writers).await.concat()
    }

    async fn stop(mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.postgres.stop().await.unwrap();
    }
}

/// The value below which so many hundredths lie, in milliseconds.
fn percentile(values: &mut [Duration], hundredths: usize) -> f64 {
    values.sort_unstable();
    values[(values.len() - 1) * hundredths / 100].as_secs_f64() * 1_000.0
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` and clippy build this; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bench = Bench::start().await;
    let (client, connection) = tokio_postgres::connect(bench.postgres.database_url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
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
        ("send a notification (asked: p50 ≤ 5)", &mut ours),
        ("floor: commit one row", &mut floor),
    ] {
        let [p50, p95, p99] = [50, 95, 99].map(|hundredths| percentile(values, hundredths));
        println!("{what:<44} {p50:>8.2} {p95:>8.2} {p99:>8.2}");
    }
    bench.stop().await;
}
