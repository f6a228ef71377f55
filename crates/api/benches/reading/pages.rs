//! `POST /tools/read`: 1,000 rows among 1,000,000.
//!
//! What has an index: the primary key, references, what is declared unique, and
//! `created_by_execution_id`.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::Bench;

const SAMPLES: usize = 1_000;
const REQUESTS: usize = 200;
const WARM_UP: usize = 10;

/// The 1,000 samples, and 1,000 measurements of each in no order.
async fn store(bench: &Bench) {
    let schema = bench.schema().await;
    bench
        .database
        .batch_execute(&format!(
            "INSERT INTO \"{schema}\".sample (id, name, volume, created_by_execution_id) \
               SELECT 'page-' || i, 'page ' || i, i, md5('e')::uuid FROM generate_series(0, {last}) i; \
             INSERT INTO \"{schema}\".measurement (id, sample_id, kind, value, replicate, created_by_execution_id) \
               SELECT lpad(to_hex(i), 12, '0') || '-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), \
                 'page-' || (i * 7919::bigint % {SAMPLES}), 'od600', i * 0.001, i % 96, md5((i / 1000)::text)::uuid \
               FROM generate_series(0, 999999) AS i",
            last = SAMPLES - 1,
        ))
        .await
        .unwrap();
    let vacuum = format!("VACUUM ANALYZE \"{schema}\".measurement, \"{schema}\".sample");
    bench.database.batch_execute(&vacuum).await.unwrap();
    bench.database.batch_execute("CHECKPOINT").await.unwrap();
}

async fn page(bench: &Bench, what: &str, filters: impl Fn(usize) -> Value) {
    let mut times = Vec::new();
    for request in 0..REQUESTS + WARM_UP {
        let body = json!({ "target_name": "measurement", "target_type": "table",
            "filters": filters(request * 7 % SAMPLES), "limit": 1000 });
        let start = Instant::now();
        let bytes = bench.post_for_bytes("/tools/read", &body).await;
        let time = start.elapsed().as_secs_f64() * 1000.0;
        if request >= WARM_UP {
            times.push(time);
        }
        if request == 0 {
            let rows: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(rows.len(), 1000, "{what}");
        }
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{:<58} {:>9.2} {:>9.2}          (p50, p99; asked: p50 below 10)",
        format!("1,000 of 1,000,000 rows {what}"),
        times[times.len() / 2],
        times[times.len() * 99 / 100],
    );
}

pub(crate) async fn among_1_000_000(bench: &mut Bench) {
    store(bench).await;
    page(
        bench,
        "by a reference",
        |n| json!({ "sample": format!("page-{n}") }),
    )
    .await;
    page(
        bench,
        "by the reference's name",
        |n| json!({ "sample__name": format!("page {n}") }),
    )
    .await;
    page(bench, "by 1,000 primary keys", |n| {
        let ids: Vec<String> = (0..1000)
            .map(|i| i * 1000 + n)
            .map(|i| format!("{i:012x}-0000-7000-8000-{i:012x}"))
            .collect();
        json!({ "id__in": ids })
    })
    .await;
    page(bench, "by the last primary key seen", |n| {
        let n = n * 900 + 5000;
        json!({ "id__lt": format!("{n:012x}-0000-7000-8000-{n:012x}") })
    })
    .await;
    page(bench, "without a filter", |_| json!({})).await;
}
