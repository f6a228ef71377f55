//! Overhead of a run on the platform, with the real program and real scripts on a separate database
//! with fsync on: the time beyond the script, the time from a confirmed file to its run, and
//! whether a thousand files confirmed at once are each one run. Run with `just bench`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark prints its figures, and stops at the first surprise"
)]

mod harness;
#[path = "../support/mod.rs"]
mod support;

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use harness::{Bench, PYTHON};

/// A script without dependencies, as short as can be.
const SCRIPT: &str = "print('done')\n";
const WARM_UP: usize = 3;
const RUNS: usize = 10;
const CONFIRMED: usize = 20;
const BURST: usize = 1_000;
/// Of the burst, every so manieth file matches no trigger.
const OTHERS: usize = 10;

#[expect(
    clippy::disallowed_methods,
    reason = "the server's times are compared with the clock"
)]
fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` and clippy build this; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{:<66} {:>9} {:>9}", "", "p50", "most");
    let bench = Bench::start(&["serve"], 0).await;
    one_after_the_other(&bench).await;
    from_confirm_to_running(&bench).await;
    bench.stop().await;
    let bench = Bench::start(&["serve", "--no-worker"], 2).await;
    a_thousand_at_once(&bench).await;
    bench.stop().await;
}

/// The overhead of single runs, and what a client waits for each of ten.
async fn one_after_the_other(bench: &Bench) {
    let job = bench.job("short", &Value::Null, SCRIPT).await;
    let (mut over, mut whole) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + RUNS {
        let alone = alone();
        let began = Instant::now();
        let run = bench.post(&format!("/jobs/{job}/run"), json!({})).await;
        let id = run["job_execution_id"].as_str().unwrap();
        let ended = bench.ended(id).await;
        let waited = began.elapsed();
        assert_eq!(ended["status"], "completed", "{ended}");
        if round >= WARM_UP {
            let on_platform = bench.queued_to_completed(id).await;
            over.push(on_platform.saturating_sub(alone));
            whole.push(waited);
        }
    }
    report(
        "overhead: queued to completed, less the script alone",
        &mut over,
        "p50 ≤ 150 ms",
    );
    report(
        "one of ten tasks, asked for to seen completed",
        &mut whole,
        "each < 830 ms",
    );
}

/// The script by the same Python without the platform.
fn alone() -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script.py");
    std::fs::write(&path, SCRIPT).unwrap();
    let began = Instant::now();
    let status = Command::new(PYTHON)
        .arg(path)
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    began.elapsed()
}

/// From the request that confirms a file to the start of the run that it triggers.
async fn from_confirm_to_running(bench: &Bench) {
    let instrument = bench.instrument("reader").await;
    let trigger = trigger(&instrument);
    let job = bench.job("parse", &trigger, SCRIPT).await;
    let mut latency = Vec::new();
    for number in 0..WARM_UP + CONFIRMED {
        let file = bench
            .put_file(&instrument, &format!("plate {number}.csv"))
            .await;
        let began = now();
        bench.confirm(&file).await;
        let run = loop {
            let runs = bench
                .get(&format!("/job-executions?job_id={job}&limit=1"))
                .await;
            if runs[0]["trigger_file_id"] == file.as_str() && !runs[0]["completed_at"].is_null() {
                break runs[0].clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(run["status"], "completed", "{run}");
        if number >= WARM_UP {
            let passed = instant(&run["started_at"]) - began;
            latency.push(Duration::try_from(passed).unwrap());
        }
    }
    report(
        "confirm a file to its run is running",
        &mut latency,
        "p50 ≤ 300 ms",
    );
}

async fn a_thousand_at_once(bench: &Bench) {
    let instrument = bench.instrument("reader").await;
    let job = bench.job("parse", &trigger(&instrument), SCRIPT).await;
    let names = (0..BURST).map(|number| {
        let ending = if number % OTHERS == 0 { "txt" } else { "csv" };
        format!("plate {number}.{ending}")
    });
    let files: Vec<(String, String)> = stream::iter(names)
        .map(async |name| (bench.put_file(&instrument, &name).await, name))
        .buffer_unordered(16)
        .collect()
        .await;
    let matching = files
        .iter()
        .filter(|(_, name)| name.ends_with("csv"))
        .count();
    let began = Instant::now();
    stream::iter(&files)
        .for_each_concurrent(BURST, async |(file, _)| bench.confirm(file).await)
        .await;
    let confirmed = began.elapsed();
    bench
        .until_rows("SELECT count(*) FROM labdata.event", 0)
        .await;
    let queued = began.elapsed();
    bench
        .until_rows(
            "SELECT count(*) FROM labdata.job_execution WHERE completed_at IS NOT NULL",
            matching,
        )
        .await;
    let ended = began.elapsed();
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for run in bench.all_executions(&job).await {
        assert_eq!(run["status"], "completed", "{run}");
        *runs
            .entry(run["trigger_file_id"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    let once = files.iter().filter(|(file, name)| {
        runs.get(file).copied().unwrap_or(0) == usize::from(name.ends_with("csv"))
    });
    println!(
        "{BURST} files confirmed at once, two workers: {} have exactly the runs that they should \
         (asked: all)\n    confirmed after {confirmed:.1?}, all runs queued after {queued:.1?}, all \
         {matching} completed after {ended:.1?}",
        once.count()
    );
}

fn trigger(instrument: &str) -> Value {
    json!({
        "trigger_enabled": true, "trigger_category": "file_uploaded",
        "trigger_instrument_id": instrument, "trigger_conditions": {"file_extensions": ["csv"]},
    })
}

fn instant(value: &Value) -> OffsetDateTime {
    OffsetDateTime::parse(value.as_str().unwrap(), &Rfc3339).unwrap()
}

fn report(what: &str, times: &mut [Duration], asked: &str) {
    times.sort_unstable();
    let ms = |place: usize| times[place].as_secs_f64() * 1_000.0;
    let (middle, most) = (ms((times.len() - 1) / 2), ms(times.len() - 1));
    println!("{what:<66} {middle:>6.1} ms {most:>6.1} ms  (asked: {asked})");
}
