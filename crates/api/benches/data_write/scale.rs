//! Costs that must not grow: with the size of a table, and of memory with that of a request.

use serde_json::{Value, json};

use crate::harness::{Bench, report, timed};

const ROWS: usize = 10_000;
const ROUNDS: usize = 7;
const STORED: i64 = 5_000_000;

/// The most bytes that a body may have, less one.
const LARGEST_BODY: usize = 4_718_591;

fn body(table: &str, round: usize) -> String {
    let rows: Vec<Value> = (0..ROWS)
        .map(|i| json!({ "name": format!("row {round} {i}"), "volume": i as f64 * 0.5 }))
        .collect();
    json!({ "tables": [{ "table": table, "rows": rows }] }).to_string()
}

/// The same rows into a table of five million, and into an empty one.
pub(crate) async fn insert_among_5_000_000(bench: &mut Bench) {
    let schema = bench.schema().await;
    let columns = json!({ "semantic_category": "curated", "columns": [
        { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
        { "name": "volume", "data_type": "float" } ] });
    bench.put("empty", columns.clone()).await;
    bench.put("full", columns).await;
    let stored = format!(
        "INSERT INTO \"{schema}\".\"full\" (id, name, volume, created_at, updated_at, created_by_execution_id) \
         SELECT lpad(to_hex(i), 12, '0') || '-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 'stored ' || i, i, now(), now(), \
         md5((i / 1000)::text)::uuid FROM generate_series(1, {STORED}) AS i"
    );
    bench.database.batch_execute(&stored).await.unwrap();
    let vacuum = format!("VACUUM ANALYZE \"{schema}\".\"full\"");
    bench.database.batch_execute(&vacuum).await.unwrap();
    bench.database.batch_execute("CHECKPOINT").await.unwrap();
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        bench
            .database
            .batch_execute(&format!("TRUNCATE \"{schema}\".\"empty\""))
            .await
            .unwrap();
        let (empty, full) = (body("empty", round), body("full", round));
        let floor = timed(bench.write(empty)).await;
        let ours = timed(bench.write(full)).await;
        if round > 0 {
            pairs.push((ours, floor));
        }
    }
    report(
        "10,000 rows among 5,000,000 / into an empty table",
        1.5,
        &pairs,
    );
}

/// Megabytes by which the server grows at the peak of a body of the largest size: rows, and series.
pub(crate) async fn memory_of_the_largest_request(bench: &mut Bench) {
    let rows = {
        let mut rows: Vec<Value> = Vec::with_capacity(ROWS);
        for i in 0..ROWS {
            rows.push(json!({ "name": format!("{:0>400} {i}", ""), "volume": i }));
        }
        json!({ "tables": [{ "table": "sample", "rows": rows }] })
    };
    let series = {
        let values: Vec<f64> = (0..125_000)
            .map(|i| f64::from(i) * 0.123_456_789_1)
            .collect();
        json!({ "tables": [{ "table": "sample", "rows": [{ "_ref": "s", "name": "memory" }] }],
            "series": [{ "table": "curve", "parent": "@s", "columns": { "t": values, "od": values } }] })
    };
    for (what, body) in [("rows", rows), ("series", series)] {
        let mut body = body.to_string();
        // Spaces weigh as much as anything else while the body is read.
        body.extend(std::iter::repeat_n(
            ' ',
            LARGEST_BODY.saturating_sub(body.len()),
        ));
        assert_eq!(body.len(), LARGEST_BODY, "{what}");
        let before = bench.server.memory("VmRSS");
        bench.server.forget_peak();
        bench.write(body).await;
        println!(
            "{:<58} {:>9.1} {before:>9.1}          (MB at the peak and before; asked: growth below 64)",
            format!("memory of a body of 4.5 MB: {what}"),
            bench.server.memory("VmHWM"),
        );
    }
}
