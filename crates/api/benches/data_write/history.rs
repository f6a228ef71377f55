//! Costs of the history of rows: the same writes to tables with and without it, in turn, and undoing one.

use serde_json::{Value, json};

use crate::harness::{Bench, report, timed};

const ROWS: usize = 10_000;
const POINTS: usize = 125_000;
const ROUNDS: usize = 9;

/// Defines the same tables with and without a history.
async fn define(bench: &Bench) {
    for (suffix, history) in [("with", true), ("without", false)] {
        bench
            .put(
                &format!("tube_{suffix}"),
                json!({ "semantic_category": "curated", "history": history, "columns": [
                    { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
                    { "name": "volume", "data_type": "float" },
                    { "name": "note", "data_type": "string" } ] }),
            )
            .await;
        bench
            .put(
                &format!("trace_{suffix}"),
                json!({ "semantic_category": "raw", "history": history, "columns": [
                    { "name": "tube", "data_type": "string", "references": format!("tube_{suffix}"), "is_nullable": false },
                    { "name": "order", "data_type": "integer" },
                    { "name": "t", "data_type": "float" },
                    { "name": "od", "data_type": "float" } ] }),
            )
            .await;
    }
}

fn rows(table: &str, mode: &str, prefix: &str, volume: usize) -> String {
    let rows: Vec<Value> = (0..ROWS)
        .map(
            |i| json!({ "name": format!("{prefix} {i}"), "volume": volume, "note": "as measured" }),
        )
        .collect();
    let write = match mode {
        "insert" => json!({ "table": table, "mode": mode, "rows": rows }),
        _ => json!({ "table": table, "mode": mode, "key": ["name"], "rows": rows }),
    };
    json!({ "tables": [write] }).to_string()
}

fn points(table: &str, tube: &str, round: usize) -> String {
    let values = |scale: f64| -> Vec<f64> {
        let start = round as f64;
        (0..POINTS).map(|i| start + i as f64 * scale).collect()
    };
    json!({ "series": [{ "table": table, "parent": tube,
        "columns": { "t": values(0.066_667), "od": values(0.001_234_567_89) } }] })
    .to_string()
}

pub(crate) async fn history_of_10_000_rows(bench: &mut Bench) {
    define(bench).await;
    let (mut inserts, mut upserts, mut restores, mut series) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut tubes = Vec::new();
    for table in ["tube_with", "tube_without"] {
        let response = bench.write(rows(table, "insert", "tube", 0)).await;
        tubes.push(response["tables"][0]["ids"][0].as_str().unwrap().to_owned());
    }
    for round in 0..=ROUNDS {
        let prefix = format!("new {round}");
        let [with, without] =
            ["tube_with", "tube_without"].map(|table| rows(table, "insert", &prefix, round));
        let inserted = pair(bench, with, without, round).await;
        let [with, without] =
            ["tube_with", "tube_without"].map(|table| rows(table, "upsert", "tube", round + 1));
        let upserted = pair(bench, with, without, round).await;
        let [with, without] = [("trace_with", &tubes[0]), ("trace_without", &tubes[1])]
            .map(|(table, tube)| points(table, tube, round));
        let replaced = pair(bench, with, without, round).await;
        let again = rows("tube_with", "upsert", "tube", round + 100);
        let mut execution = String::new();
        let upsert = timed(async {
            let response = bench.write(again).await;
            response["job_execution_id"]
                .as_str()
                .unwrap()
                .clone_into(&mut execution);
        })
        .await;
        let path = format!("/job-executions/{execution}/revert");
        let restore = timed(bench.post(&path, json!({ "restore": true }))).await;
        if round > 0 {
            inserts.push(inserted);
            upserts.push(upserted);
            series.push(replaced);
            restores.push((restore, upsert));
        }
    }
    report("insert 10,000 rows / without history", 1.03, &inserts);
    report("upsert 10,000 rows / without history", 1.5, &upserts);
    report("replaced series of 250,000 values / without", 1.3, &series);
    report("restore of the upsert / the upsert", 2.0, &restores);
}

/// Times of both writes; which is first alternates, because the first one pays for what is due before it.
async fn pair(bench: &Bench, with: String, without: String, round: usize) -> (f64, f64) {
    if round.is_multiple_of(2) {
        let with = timed(bench.write(with)).await;
        (with, timed(bench.write(without)).await)
    } else {
        let without = timed(bench.write(without)).await;
        (timed(bench.write(with)).await, without)
    }
}
