//! 10,000 rows: 2,000 samples and 8,000 measurements that reference them by label.

use futures::pin_mut;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use tokio_postgres::{binary_copy::BinaryCopyInWriter, types::Type};
use uuid::Uuid;

use crate::harness::{Bench, report, timed};

const SAMPLES: usize = 2_000;
const PER_SAMPLE: usize = 4;
const ROUNDS: usize = 9;

fn body(round: usize) -> String {
    let samples: Vec<Value> = (0..SAMPLES)
        .map(|i| json!({ "_ref": format!("s{i}"), "name": format!("ours {round} {i}"), "volume": i as f64 * 0.5,
            "taken_at": "2026-03-01T12:00:00Z" }))
        .collect();
    let measurements: Vec<Value> = (0..SAMPLES * PER_SAMPLE)
        .map(|i| json!({ "sample": format!("@s{}", i % SAMPLES), "kind": "od600", "value": i as f64 * 0.001,
            "replicate": i / SAMPLES }))
        .collect();
    let mut body = Map::new();
    body.insert(
        "tables".to_owned(),
        json!([
        { "table": "sample", "rows": samples }, { "table": "measurement", "rows": measurements } ]),
    );
    Value::Object(body).to_string()
}

async fn copy(bench: &mut tokio_postgres::Client, schema: &str, round: usize) {
    let id =
        |n: usize| Uuid::from_u128((1 << 100) + ((round as u128) << 40) + n as u128).to_string();
    let names: Vec<(String, String)> = (0..SAMPLES)
        .map(|i| (id(i), format!("floor {round} {i}")))
        .collect();
    let taken: OffsetDateTime = OffsetDateTime::from_unix_timestamp(1_772_366_400).unwrap();
    let execution = Uuid::from_u128(round as u128);
    let transaction = bench.transaction().await.unwrap();
    let sink = transaction
        .copy_in(&format!(
            "COPY \"{schema}\".sample (id, name, volume, taken_at, created_at, updated_at, created_by_execution_id) FROM STDIN BINARY"
        ))
        .await
        .unwrap();
    let writer = BinaryCopyInWriter::new(
        sink,
        &[
            Type::TEXT,
            Type::TEXT,
            Type::FLOAT8,
            Type::TIMESTAMPTZ,
            Type::TIMESTAMPTZ,
            Type::TIMESTAMPTZ,
            Type::UUID,
        ],
    );
    pin_mut!(writer);
    for (i, (id, name)) in names.iter().enumerate() {
        let volume = i as f64 * 0.5;
        writer
            .as_mut()
            .write(&[id, name, &volume, &taken, &taken, &taken, &execution])
            .await
            .unwrap();
    }
    writer.finish().await.unwrap();
    let sink = transaction
        .copy_in(&format!(
            "COPY \"{schema}\".measurement (id, sample_id, kind, value, replicate, created_at, updated_at, created_by_execution_id) FROM STDIN BINARY"
        ))
        .await
        .unwrap();
    let writer = BinaryCopyInWriter::new(
        sink,
        &[
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::FLOAT8,
            Type::INT8,
            Type::TIMESTAMPTZ,
            Type::TIMESTAMPTZ,
            Type::UUID,
        ],
    );
    pin_mut!(writer);
    for i in 0..SAMPLES * PER_SAMPLE {
        let (id, value, replicate) = (id(SAMPLES + i), i as f64 * 0.001, (i / SAMPLES) as i64);
        let sample = &names[i % SAMPLES].0;
        writer
            .as_mut()
            .write(&[
                &id, sample, &"od600", &value, &replicate, &taken, &taken, &execution,
            ])
            .await
            .unwrap();
    }
    writer.finish().await.unwrap();
    transaction.commit().await.unwrap();
}

pub(crate) async fn insert_10_000(bench: &mut Bench) {
    let schema = bench.schema().await;
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let body = body(round);
        let floor = timed(copy(&mut bench.database, &schema, round)).await;
        let ours = timed(bench.write(body)).await;
        // The first round only warms up.
        if round > 0 {
            pairs.push((ours, floor));
        }
    }
    report(
        "insert 10,000 rows by label / binary COPY of the same",
        1.6,
        &pairs,
    );
}
