//! One series of 125,000 points, and its download.

use std::time::Instant;

use serde_json::json;

use crate::harness::{Bench, median};

const POINTS: usize = 125_000;
const ROUNDS: usize = 25;

/// Writes the series, among others; yields its parent's id.
pub(crate) async fn write(bench: &mut Bench) -> String {
    let t: Vec<f64> = (0..POINTS).map(|i| i as f64 * 0.066_667).collect();
    let od: Vec<f64> = (0..POINTS)
        .map(|i| 0.05 + 1.0 / (1.0 + (-(i as f64) * 0.0001).exp()))
        .collect();
    let body = json!({
        "tables": [{ "table": "sample", "rows": [{ "_ref": "s", "name": "download" }] }],
        "series": [{ "table": "curve", "parent": "@s", "columns": { "t": t, "od": od } }],
    });
    let response = bench.write(body.to_string()).await;
    let rows: Vec<_> = (0..1000)
        .map(|i| json!({ "_ref": format!("o{i}"), "name": format!("other {i}") }))
        .collect();
    let others: Vec<_> = (0..1000)
        .map(|i| {
            json!({ "table": "curve", "parent": format!("@o{i}"),
                "columns": { "t": t[..96], "od": od[..96] } })
        })
        .collect();
    let body = json!({ "tables": [{ "table": "sample", "rows": rows }], "series": others });
    bench.write(body.to_string()).await;
    bench.database.batch_execute("ANALYZE").await.unwrap();
    response["refs"]["s"].as_str().unwrap().to_owned()
}

/// Values of the two measured columns per second; the third, the order, comes for nothing.
pub(crate) async fn download(bench: &Bench, parent: &str) {
    let path = format!("/tools/series/curve?parent={parent}");
    for (form, limit) in [
        (
            "application/vnd.apache.arrow.stream",
            "  (asked: at least 5000000)",
        ),
        ("application/vnd.apache.parquet", ""),
        ("text/csv", ""),
        ("application/json", ""),
    ] {
        let (mut rates, mut firsts, mut size) = (Vec::new(), Vec::new(), 0);
        for round in 0..=ROUNDS {
            let start = Instant::now();
            let mut response = bench.get(&path, form).await;
            let mut bytes = 0;
            let mut first = None;
            while let Some(chunk) = response.chunk().await.unwrap() {
                first.get_or_insert_with(|| start.elapsed());
                bytes += chunk.len();
            }
            if round > 0 {
                rates.push(2.0 * POINTS as f64 / start.elapsed().as_secs_f64());
                firsts.push(first.unwrap().as_secs_f64() * 1000.0);
                size = bytes;
            }
        }
        println!(
            "{:<58} {:>9.0} {:>9.1} {:>7.1}{limit}",
            format!("values/s, ms to first byte, MB: {form}"),
            median(rates),
            median(firsts),
            size as f64 / 1e6,
        );
    }
}
