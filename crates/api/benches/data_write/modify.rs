//! Upserts, deletes and reverts of 10,000 rows, and single rows from eight writers.

use std::{path::PathBuf, process::Command, time::Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::harness::{Bench, report, report_at_least, timed};

const ROWS: usize = 10_000;
const ROUNDS: usize = 7;
const WRITERS: usize = 8;
const WRITES: usize = 1_000;
const ROUNDS_OF_SINGLES: usize = 3;

/// Tables of single rows, and whether they have a history.
const SINGLE_TABLES: [(&str, bool); 2] = [("single_with", true), ("single_without", false)];

fn names(prefix: &str) -> Vec<String> {
    (0..ROWS).map(|i| format!("{prefix} {i}")).collect()
}

fn body(mode: &str, names: &[String], volume: f64) -> String {
    let rows: Vec<Value> = names
        .iter()
        .map(|name| match mode {
            "delete" => json!({ "name": name }),
            _ => json!({ "name": name, "volume": volume }),
        })
        .collect();
    json!({ "tables": [{ "table": "sample", "mode": mode, "key": ["name"], "rows": rows }] })
        .to_string()
}

/// All rows match: beside a hand-written `INSERT … ON CONFLICT` from arrays.
pub(crate) async fn upsert_10_000(bench: &mut Bench) {
    let schema = bench.schema().await;
    let names = names("upsert");
    bench.write(body("insert", &names, 0.0)).await;
    // A separate table: the platform's constraints can be deferred, which makes them no arbiters of a conflict.
    bench
        .database
        .batch_execute(&format!(
            "CREATE TABLE public.upserted (LIKE \"{schema}\".sample); \
             ALTER TABLE public.upserted ADD PRIMARY KEY (id), ADD UNIQUE (name)"
        ))
        .await
        .unwrap();
    let statement = "INSERT INTO public.upserted (id, name, volume, created_at, updated_at) \
         SELECT u.id, u.name, u.volume, now(), now() FROM unnest($1::text[], $2::text[], $3::float8[]) AS u(id, name, volume) \
         ON CONFLICT (name) DO UPDATE SET volume = excluded.volume, updated_at = now()";
    let ids: Vec<String> = (0..ROWS)
        .map(|i| Uuid::from_u128(i as u128).to_string())
        .collect();
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let volumes: Vec<f64> = vec![round as f64; ROWS];
        let body = body("upsert", &names, round as f64 + 0.5);
        let floor = timed(async {
            bench
                .database
                .execute(statement, &[&ids, &names, &volumes])
                .await
                .unwrap();
        })
        .await;
        let ours = timed(bench.write(body)).await;
        if round > 0 {
            pairs.push((ours, floor));
        }
    }
    report(
        "upsert 10,000 matching rows / INSERT ... ON CONFLICT",
        2.0,
        &pairs,
    );
}

/// Beside `DELETE … USING unnest` of as many rows of the same table.
pub(crate) async fn delete_10_000(bench: &mut Bench) {
    let schema = bench.schema().await;
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let (ours, theirs) = (
            names(&format!("delete {round}")),
            names(&format!("gone {round}")),
        );
        bench.write(body("insert", &ours, 0.0)).await;
        bench.write(body("insert", &theirs, 0.0)).await;
        let body = body("delete", &ours, 0.0);
        let statement = format!(
            "DELETE FROM \"{schema}\".sample t USING unnest($1::text[]) AS u(name) WHERE t.name = u.name"
        );
        let floor = timed(async {
            bench
                .database
                .execute(&statement, &[&theirs])
                .await
                .unwrap()
        })
        .await;
        let ours = timed(bench.write(body)).await;
        if round > 0 {
            pairs.push((ours, floor));
        }
    }
    report("delete 10,000 rows / DELETE ... USING unnest", 2.0, &pairs);
}

/// Beside the insert that is reverted.
pub(crate) async fn revert_10_000(bench: &mut Bench) {
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let body = body("insert", &names(&format!("revert {round}")), 0.0);
        let start = Instant::now();
        let response = bench.write(body).await;
        let insert = start.elapsed().as_secs_f64() * 1000.0;
        let execution = response["job_execution_id"].as_str().unwrap().to_owned();
        let revert =
            timed(bench.post(&format!("/job-executions/{execution}/revert"), Value::Null)).await;
        if round > 0 {
            pairs.push((revert, insert));
        }
    }
    report("revert of 10,000 rows / their insert", 2.0, &pairs);
}

/// One-row writes of eight writers beside `pgbench` inserting one row a transaction into the same
/// table, also with eight clients: as it does by default, and with prepared statements.
pub(crate) async fn single_rows(bench: &mut Bench) {
    let schema = bench.schema().await;
    let Some(program) = pgbench() else {
        println!("one-row writes: not measured, as there is no pgbench to compare them to");
        return;
    };
    let insert = format!(
        "INSERT INTO \"{schema}\".sample (id, name) \
         VALUES (gen_random_uuid()::text, gen_random_uuid()::text);\n"
    );
    let script = TempDir::new().unwrap();
    let script = script.path().join("insert.sql");
    std::fs::write(&script, insert).unwrap();
    for protocol in ["simple", "prepared"] {
        let mut pairs = Vec::new();
        for round in 0..=ROUNDS_OF_SINGLES {
            let floor = Command::new(&program)
                .args(["--no-vacuum", "--client", &WRITERS.to_string()])
                .args(["--transactions", &WRITES.to_string()])
                .args(["--protocol", protocol, "--file"])
                .args([script.as_os_str(), bench.server.database_url().as_ref()])
                .output()
                .unwrap();
            let floor = rate_in(&String::from_utf8_lossy(&floor.stdout));
            let rate = rate_of_writers(bench, "sample", &format!("{protocol} {round}")).await;
            if round > 0 {
                pairs.push((rate, floor));
            }
        }
        report_at_least(
            &format!("one-row writes/s of 8 writers / pgbench, {protocol}"),
            0.35,
            &pairs,
        );
    }
}

/// One-row writes of eight writers into a table with a history, beside the same into one without.
pub(crate) async fn single_rows_with_history(bench: &mut Bench) {
    let mut pairs = Vec::new();
    for (table, history) in SINGLE_TABLES {
        let definition = json!({ "semantic_category": "curated", "history": history, "columns": [
            { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true }] });
        bench.put(table, definition).await;
    }
    for round in 0..=2 * ROUNDS_OF_SINGLES {
        let prefix = format!("history {round}");
        // Which comes first alternates, as caches and the disk favor one.
        let mut rates = [0.0; 2];
        for turn in 0..2 {
            let which = (round + turn) % 2;
            rates[which] = rate_of_writers(bench, SINGLE_TABLES[which].0, &prefix).await;
        }
        if round > 0 {
            pairs.push((rates[0], rates[1]));
        }
    }
    report_at_least(
        "one-row writes/s of 8 writers, with a history / without",
        0.95,
        &pairs,
    );
}

/// Requests per second of eight writers of one row each.
async fn rate_of_writers(bench: &Bench, table: &'static str, prefix: &str) -> f64 {
    let start = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let connecting = bench.server.plain_connection();
        let writer = format!("{prefix} {writer}");
        tokio::spawn(async move {
            let mut connection = connecting.await;
            for i in 0..WRITES {
                let row = json!({ "name": format!("single {writer} {i}") });
                let body = json!({ "tables": [{ "table": table, "rows": [row] }] });
                connection.post("/data/write", &body.to_string()).await;
            }
        })
    });
    futures::future::try_join_all(writers).await.unwrap();
    (WRITERS * WRITES) as f64 / start.elapsed().as_secs_f64()
}

/// Transactions per second as reported by `pgbench`.
fn rate_in(output: &str) -> f64 {
    let line = output.lines().find_map(|line| line.strip_prefix("tps = "));
    let number = line.and_then(|line| line.split(' ').next());
    number.unwrap().parse().unwrap()
}

/// The program, from the path or where Debian keeps it.
fn pgbench() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    std::env::split_paths(&path)
        .chain(debian.flatten().map(|version| version.path().join("bin")))
        .map(|directory| directory.join("pgbench"))
        .find(|program| program.is_file())
}
