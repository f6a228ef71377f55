//! Overhead of a run: the time from submission to end, compared with the same script started by the
//! same Python without a runner.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failing benchmark panics, and its result goes to the terminal"
)]

use std::{
    ffi::OsString,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use labdata_local_runner::LocalRunner;
use labdata_port_contracts::work::{end_of, spec};
use labdata_ports::work::runner::JobRunner;
use labdata_sandbox::{Sandbox, Settings};

const PYTHON: &str = "/usr/bin/python3";

const ROUNDS: usize = 20;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap()
}

#[tokio::main]
async fn main() {
    let data = tempfile::tempdir().unwrap();
    let supervisor = OsString::from(env!("CARGO_BIN_EXE_labdata-run-supervisor"));
    let sandbox = Arc::new(Sandbox::new(Settings {
        python: Some(PYTHON.into()),
        ..Settings::new(data.path().to_owned(), vec![supervisor])
    }));
    let isolation = sandbox.host().await.unwrap().isolation();
    println!("isolation: {isolation:?}");
    let runner = LocalRunner::new(sandbox);
    let script = "print('done')\n";
    let path = data.path().join("script.py");
    std::fs::write(&path, script).unwrap();

    let (mut alone, mut run, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let began = Instant::now();
        let status = Command::new(PYTHON)
            .arg(&path)
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        let floor = began.elapsed();

        let spec = spec(script);
        let began = Instant::now();
        runner.submit(&spec).await.unwrap();
        let end = end_of(&runner, spec.run).await;
        let whole = began.elapsed();
        assert!(end.succeeded());
        runner.reap(spec.run).await.unwrap();
        // The first round warms what is cached.
        if round > 0 {
            alone.push(floor);
            run.push(whole);
            over.push(whole.saturating_sub(floor));
        }
    }
    println!("medians of {ROUNDS} rounds");
    println!("the script alone   {:>9.1?}", median(alone));
    println!("submit to ended    {:>9.1?}", median(run));
    println!(
        "overhead           {:>9.1?}   asked: at most 100 ms",
        median(over)
    );
}
