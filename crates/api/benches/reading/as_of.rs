//! `POST /tools/read` with `as_of`: 1,000 rows among 1,000,000 with 10 versions each, beside the same read of now.

use serde_json::{Value, json};

use crate::harness::{Bench, report, timed};

const ROUNDS: usize = 60;
const WARM_UP: usize = 5;

/// Rows that were updated every day of ten, recorded as writes record them.
async fn store(bench: &Bench) {
    bench
        .put(
            "aliquot",
            json!({ "semantic_category": "curated", "columns": [
                { "name": "name", "data_type": "string" }, { "name": "volume", "data_type": "float" },
                { "name": "replicate", "data_type": "integer" }, { "name": "taken_at", "data_type": "datetime" },
                { "name": "note", "data_type": "text" } ] }),
        )
        .await;
    let schema = bench.schema().await;
    bench
        .database
        .batch_execute(&format!(
            "UPDATE labdata.catalog_table SET history_since = now() - interval '30 days'; \
             INSERT INTO \"{schema}\".aliquot (id, name, volume, replicate, taken_at, note, created_at, updated_at) \
               SELECT lpad(to_hex(i), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 'aliquot ' || i, i * 0.37, \
                 i % 96, now(), 'as measured', now() - interval '11 days', now() - interval '1 hour' \
               FROM generate_series(1, 1000000) i; \
             INSERT INTO labdata.row_change (organization_id, table_name, row_id, action, at, before, existed_since) \
               SELECT o.id, 'aliquot', t.id, 'updated', now() - (11 - v) * interval '1 day', row_to_json(t), t.created_at \
               FROM labdata.organization o, generate_series(1, 10) v, LATERAL (SELECT * FROM \"{schema}\".aliquot s WHERE v > 0) t"
        ))
        .await
        .unwrap();
    let vacuum = format!("VACUUM ANALYZE \"{schema}\".aliquot, labdata.row_change");
    bench.database.batch_execute(&vacuum).await.unwrap();
    bench.database.batch_execute("CHECKPOINT").await.unwrap();
}

pub(crate) async fn as_of_among_1_000_000(bench: &mut Bench) {
    store(bench).await;
    let row = bench
        .database
        .query_one(
            "SELECT to_char(now() - interval '5 days 12 hours', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
            &[],
        )
        .await
        .unwrap();
    let at: String = row.get(0);
    for (what, filters) in [
        ("", json!({})),
        (" filtered by a column", json!({ "replicate__lt": 96 })),
    ] {
        let mut pairs = Vec::new();
        for round in 0..ROUNDS + WARM_UP {
            let now = json!({ "target_name": "aliquot", "target_type": "table", "filters": filters, "limit": 1000 });
            let mut then = now.clone();
            then["as_of"] = json!(at);
            if round == 0 {
                for body in [&now, &then] {
                    let bytes = bench.post_for_bytes("/tools/read", body).await;
                    let rows: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
                    assert_eq!(rows.len(), 1000);
                }
            }
            let floor = timed(bench.post_for_bytes("/tools/read", &now)).await;
            let ours = timed(bench.post_for_bytes("/tools/read", &then)).await;
            if round >= WARM_UP {
                pairs.push((ours, floor));
            }
        }
        report(
            &format!("1,000 of 1,000,000 rows as of days ago{what} / of now"),
            3.0,
            &pairs,
        );
    }
}
