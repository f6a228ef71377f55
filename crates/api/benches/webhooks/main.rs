//! One-row writes over HTTP at 8 connections without the trigger of webhooks, with it, and with ten webhooks that are
//! sent one type of events, or all. They take turns on one server, and each round is compared with its own first part.
//! The server is the real program on a separate database, with fsync on. Workers are left out: what counts is what a write waits for.
//! Run with `just bench -- webhooks`.

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
use serde_json::json;
use tokio_postgres::Client;

use support::{PlainConnection, Server, median};

const CONNECTIONS: usize = 8;
const ROUNDS: usize = 60;
/// Writes of one connection in a part of a round.
const WRITES: usize = 100;
/// Writes of one connection before those of a part, in which the sessions plan their statements again: preparing a
/// part alters the tables.
const WARM_UP: usize = 25;
const WEBHOOKS: usize = 10;

/// Webhooks and trigger of a part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    NoTrigger,
    NoWebhook,
    /// Ten that are sent written tables.
    TenOfOneType,
    /// Ten that are sent every event.
    TenOfAllTypes,
}

impl Setup {
    const ALL: [Self; 4] = [
        Self::NoTrigger,
        Self::NoWebhook,
        Self::TenOfOneType,
        Self::TenOfAllTypes,
    ];

    /// Brings the database into this state.
    async fn prepare(self, database: &Client) {
        let state = match self {
            Self::NoTrigger => {
                "ALTER TABLE labdata.event_log DISABLE TRIGGER event_log_is_told_to_webhooks"
            }
            Self::NoWebhook => "SELECT",
            Self::TenOfOneType => "INSERT INTO labdata.webhook SELECT * FROM one_type_of_bench",
            Self::TenOfAllTypes => "INSERT INTO labdata.webhook SELECT * FROM webhooks_of_bench",
        };
        // Truncated, as rows that were deleted and not yet removed would cost the parts that come later.
        let reset = "TRUNCATE labdata.webhook_outbox; TRUNCATE labdata.webhook; \
            ALTER TABLE labdata.event_log ENABLE TRIGGER event_log_is_told_to_webhooks";
        let statements = format!("{reset}; {state}");
        database.batch_execute(&statements).await.unwrap();
    }
}

/// Seconds that `count` writes of each connection take.
async fn writes(connections: &mut [PlainConnection], count: usize) -> f64 {
    let body = json!({
        "job_name": "Import",
        "tables": [{"table": "webhook_bench", "mode": "insert", "rows": [{"value": 1.5}]}],
    });
    let body = body.to_string();
    let start = Instant::now();
    let writers = connections.iter_mut().map(async |connection| {
        for _ in 0..count {
            connection.post("/data/write", &body).await;
        }
    });
    join_all(writers).await;
    start.elapsed().as_secs_f64()
}

/// Defines the table, and makes the webhooks, which tables of the bench remember.
async fn set_up(server: &Server, database: &Client) {
    let client = reqwest::Client::new();
    let definition = json!({
        "semantic_category": "curated", "columns": [{"name": "value", "data_type": "float"}],
    });
    let define = client
        .put(server.url("/tables/webhook_bench"))
        .json(&definition);
    let response = define.bearer_auth(support::KEY).send().await.unwrap();
    assert!(response.status().is_success());
    for _ in 0..WEBHOOKS {
        let webhook = json!({"url": "https://lab.example/hook", "events": ["*"]});
        let make = client.post(server.url("/webhooks")).json(&webhook);
        let response = make.bearer_auth(support::KEY).send().await.unwrap();
        assert!(response.status().is_success());
    }
    let remember = "CREATE TABLE webhooks_of_bench AS SELECT * FROM labdata.webhook; \
        CREATE TABLE one_type_of_bench AS SELECT * FROM labdata.webhook; \
        UPDATE one_type_of_bench SET events = '{data.written}'";
    database.batch_execute(remember).await.unwrap();
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&String> = arguments[1..]
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    // `cargo test --benches` and clippy build this; only `cargo bench` measures. A word that names another
    // benchmark is not for this one.
    let is_meant = words.is_empty() || words.iter().any(|word| *word == "webhooks");
    if !is_meant || !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let server = Server::start_as(&["serve", "--no-worker"], &[]).await;
    let database = server.database().await;
    set_up(&server, &database).await;
    let connections = (0..CONNECTIONS).map(|_| server.plain_connection());
    let mut connections = join_all(connections).await;
    let mut ratios = [const { Vec::new() }; 4];
    let mut rates = Vec::new();
    for round in 0..=ROUNDS {
        let mut seconds = [0.0; 4];
        // Another part comes first in each round, so that none has the warmer caches.
        for turn in 0..Setup::ALL.len() {
            let index = (round + turn) % Setup::ALL.len();
            Setup::ALL[index].prepare(&database).await;
            writes(&mut connections, WARM_UP).await;
            seconds[index] = writes(&mut connections, WRITES).await;
        }
        // The first round only warms up.
        if round > 0 {
            rates.push(f64::from(u32::try_from(CONNECTIONS * WRITES).unwrap()) / seconds[0]);
            for (ratios, part) in ratios.iter_mut().zip(seconds) {
                ratios.push(part / seconds[0]);
            }
        }
    }
    let [_, none, one_type, all_types] = ratios.map(median);
    let rate = median(rates);
    println!("one-row writes at {CONNECTIONS} connections, {rate:.0}/s without the trigger");
    println!("without a webhook: {none:.3} of their time (asked: ≤ 1.03)");
    println!(
        "with {WEBHOOKS} webhooks that are sent written tables: {one_type:.3} (asked: ≤ 1.10)"
    );
    println!("with {WEBHOOKS} webhooks that are sent every event: {all_types:.3}");
    server.stop().await;
}
