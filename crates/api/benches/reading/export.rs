//! Many series in one call, and the export of a table of 10,000,000 points.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Bench, median, timed};

const FORMS: [(&str, &str); 3] = [
    ("arrow", "  (asked: at least 5000000; less than 64)"),
    ("parquet", ""),
    ("csv", ""),
];
const POINTS_PER_SERIES: usize = 100_000;
const SERIES: usize = 100;
const ROUNDS: usize = 25;

fn curve(parent: &str, points: usize) -> Value {
    let t: Vec<f64> = (0..points).map(|i| i as f64 * 0.066_667).collect();
    let od: Vec<f64> = (0..points)
        .map(|i| 0.05 + 1.0 / (1.0 + (-(i as f64) * 0.0001).exp()))
        .collect();
    json!({ "table": "curve", "parent": parent, "columns": { "t": t, "od": od } })
}

/// 96 curves of 577 points in one call.
pub(crate) async fn curves(bench: &Bench) {
    let names: Vec<String> = (0..96).map(|i| format!("well {i}")).collect();
    let rows: Vec<Value> = names
        .iter()
        .map(|name| json!({ "id": name, "name": name }))
        .collect();
    let series: Vec<Value> = names.iter().map(|name| curve(name, 577)).collect();
    let body = json!({ "tables": [{ "table": "sample", "rows": rows }], "series": series });
    bench.write(body.to_string()).await;
    let body = json!({ "table": "curve", "parents": names });
    for form in ["application/vnd.apache.arrow.stream", "application/json"] {
        let mut times = Vec::new();
        for round in 0..=ROUNDS {
            let request = bench.http.post(bench.server.url("/tools/series"));
            let request = request
                .bearer_auth(crate::support::KEY)
                .header("accept", form);
            let request = request.json(&body);
            let time = timed(async {
                let response = request.send().await.unwrap().error_for_status().unwrap();
                response.bytes().await.unwrap()
            });
            let time = time.await;
            if round > 0 {
                times.push(time);
            }
        }
        let what = format!("96 curves of 577 points, ms: {form}");
        println!(
            "{what:<58} {:>9.1}  (asked: at most 150 with polars)",
            median(times)
        );
    }
}

/// Values of the two measured columns per second, and by how much the server's memory grows.
pub(crate) async fn of_10_000_000_points(bench: &Bench) {
    for i in 0..SERIES {
        let id = format!("export {i}");
        let rows = json!([{ "id": id, "name": id }]);
        let series = [curve(&id, POINTS_PER_SERIES)];
        let body = json!({ "tables": [{ "table": "sample", "rows": rows }], "series": series });
        bench.write(body.to_string()).await;
    }
    bench.database.batch_execute("ANALYZE").await.unwrap();
    for (format, asked) in FORMS {
        let (mut rates, mut grown, mut size) = (Vec::new(), 0_f64, 0);
        for _ in 0..3 {
            let before = bench.server.memory("VmRSS");
            let start = Instant::now();
            let path = format!("/tables/curve/export?format={format}");
            let mut response = bench.get(&path, "*/*").await;
            let (mut bytes, mut chunks) = (0, 0_u64);
            while let Some(chunk) = response.chunk().await.unwrap() {
                bytes += chunk.len();
                chunks += 1;
                if chunks.is_multiple_of(256) {
                    grown = grown.max(bench.server.memory("VmRSS") - before);
                }
            }
            let values = 2.0 * (SERIES * POINTS_PER_SERIES) as f64;
            rates.push(values / start.elapsed().as_secs_f64());
            size = bytes;
        }
        println!(
            "{:<58} {:>9.0} {:>9.1} {:>7.1}{asked}",
            format!("export, values/s, MB of memory more, MB: {format}"),
            median(rates),
            grown,
            size as f64 / 1e6,
        );
    }
}
