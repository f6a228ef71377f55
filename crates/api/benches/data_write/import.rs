//! 100,000 rows of a CSV file, beside COPY of the same file.

use futures::SinkExt;
use serde_json::Value;

use crate::{
    harness::{Bench, report, timed},
    support::KEY,
};

const ROWS: usize = 100_000;
const ROUNDS: usize = 5;

/// The most megabytes by which the server may grow.
const GROWTH: u32 = 256;

fn csv(round: usize) -> String {
    let rows = (0..ROWS).map(|i| {
        let volume = i as f64 * 0.001;
        format!("row {round} {i},{volume},2026-03-01T12:00:00Z")
    });
    let rows: Vec<String> = rows.collect();
    format!("name,volume,taken_at\n{}\n", rows.join("\n"))
}

async fn import(bench: &Bench, csv: &str) -> Value {
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"mode\"\r\n\r\ninsert\r\n\
         --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"rows.csv\"\r\n\r\n{csv}\r\n--b--\r\n"
    );
    let request = bench
        .http
        .post(bench.server.url("/tables/sample/import"))
        .bearer_auth(KEY)
        .header("content-type", "multipart/form-data; boundary=b")
        .body(body);
    let response = request.send().await.unwrap();
    let value: Value = response.json().await.unwrap();
    assert_eq!(value["created"], ROWS, "{value}");
    value
}

async fn copy(bench: &Bench, csv: String) {
    let sink = bench
        .database
        .copy_in("COPY floor.sample (name, volume, taken_at) FROM STDIN CSV HEADER")
        .await
        .unwrap();
    futures::pin_mut!(sink);
    sink.send(bytes::Bytes::from(csv)).await.unwrap();
    sink.close().await.unwrap();
}

pub(crate) async fn import_100_000_rows(bench: &mut Bench) {
    let schema = bench.schema().await;
    // With the indexes of the table, and keys that ascend as those of the platform do.
    let floor = format!(
        "CREATE SCHEMA IF NOT EXISTS floor; CREATE SEQUENCE floor.number; \
         CREATE TABLE floor.sample (LIKE \"{schema}\".sample INCLUDING ALL); \
         ALTER TABLE floor.sample ALTER COLUMN id SET DEFAULT lpad(nextval('floor.number')::text, 36, '0')"
    );
    bench.database.batch_execute(&floor).await.unwrap();
    let before = bench.server.memory("VmRSS");
    bench.server.forget_peak();
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let csv = csv(round);
        let ours = timed(import(bench, &csv)).await;
        let floor = timed(copy(bench, csv)).await;
        // The first round only warms up.
        if round > 0 {
            pairs.push((ours, floor));
        }
    }
    report("import 100,000 rows of CSV / COPY of the file", 3.0, &pairs);
    println!(
        "{:<58} {:>9.1} {before:>9.1}          (MB at the peak and before; asked: growth below {GROWTH})",
        "memory of an import of 100,000 rows",
        bench.server.memory("VmHWM"),
    );
}
