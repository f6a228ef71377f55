//! Aggregates over one series of 125,000 points: `POST /tools/query` beside psql.
//!
//! The stricter of two comparisons is held to the limit: psql's `\timing` of the statement
//! in a session that has run it before, connection excluded, beside the whole request. The other is
//! a psql process that connects, asks once and ends, as a script would run it.

use std::{path::PathBuf, process::Command};

use serde_json::json;

use crate::harness::{Bench, median, report, timed};

const ROUNDS: usize = 25;

/// Runs in one session of psql; the first only warms up.
const RUNS: usize = 4;

/// The program itself: what Debian has on the path is a script around it.
fn psql() -> PathBuf {
    let directory = Command::new("pg_config").arg("--bindir").output();
    let directory = directory.ok().map(|output| output.stdout);
    let beside = directory.and_then(|path| String::from_utf8(path).ok());
    let beside = beside.map(|path| PathBuf::from(path.trim()).join("psql"));
    beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("psql"))
}

struct Psql {
    program: PathBuf,
    url: String,
    options: String,
}

impl Psql {
    fn run(&self, statements: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        let output = command
            .arg(&self.url)
            .env("PGOPTIONS", &self.options)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{reported}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Milliseconds of the statement in a session that knows it.
    fn timing(&self, statement: &str) -> f64 {
        let mut statements = vec!["\\timing on"];
        statements.resize(RUNS + 1, statement);
        let output = self.run(&statements);
        let times = output.lines().filter_map(|line| {
            let time = line.strip_prefix("Time: ")?;
            time.split(' ').next()?.parse().ok()
        });
        let times: Vec<f64> = times.collect();
        assert_eq!(times.len(), RUNS, "{output}");
        median(times[1..].to_vec())
    }
}

pub(crate) async fn aggregates(bench: &mut Bench, parent: &str) {
    let psql = Psql {
        program: psql(),
        url: bench.server.database_url().to_owned(),
        options: format!("-c search_path={}", bench.schema().await),
    };
    let plain = format!(
        "SELECT count(*), avg(od), min(od), max(od), stddev(od) FROM curve WHERE sample_id = '{parent}'"
    );
    let by_reference = "SELECT s.name, count(*), avg(c.od), max(c.t) FROM curve c \
         JOIN sample s ON s.id = c.sample_id WHERE s.name = 'download' GROUP BY s.name";
    let buckets = format!(
        "SELECT floor(t / 60) AS minute, avg(od) AS od FROM curve WHERE sample_id = '{parent}' \
         GROUP BY 1 ORDER BY 1"
    );
    for (what, statement) in [
        ("five aggregates", plain.as_str()),
        ("two aggregates of a name", by_reference),
        ("an average per minute", buckets.as_str()),
    ] {
        let body = json!({ "query": statement });
        let mut session = Vec::new();
        let mut process = Vec::new();
        for round in 0..=ROUNDS {
            let floor = psql.timing(statement);
            let ours = timed(bench.post("/tools/query", body.clone())).await;
            let script = timed(async { psql.run(&[statement]) }).await;
            if round > 0 {
                session.push((ours, floor));
                process.push((ours, script));
            }
        }
        report(
            &format!("{what}: tools/query / psql \\timing"),
            1.3,
            &session,
        );
        report(
            &format!("{what}: tools/query / a psql process"),
            1.3,
            &process,
        );
    }
}
