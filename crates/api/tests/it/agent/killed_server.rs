//! A server that is killed while a snippet of `run_python` runs. Looks into `/proc`, so on Linux alone.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use labdata_test_database::TestDatabase;
use serde_json::json;

use super::lab::python_data;
use crate::{
    process::{Program, directory},
    work::platform_runs::{KEY, pause},
};

/// Time in which a killed server's processes must have ended, and its files be gone.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// Number of processes with that text in their command line.
fn processes(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

/// Number of workspaces with a file of that name in their scratch directory.
fn workspaces(data: &Path, mark: &str) -> usize {
    let workers = fs::read_dir(data.join("jobs/workers")).unwrap().flatten();
    let workspaces = workers.flat_map(|worker| {
        let found = fs::read_dir(worker.path()).into_iter().flatten().flatten();
        found.map(|workspace| workspace.path().join("scratch").join(mark))
    });
    workspaces.filter(|file| file.exists()).count()
}

async fn until_gone(count: impl Fn() -> usize) {
    let began = Instant::now();
    while count() > 0 {
        assert!(began.elapsed() < GONE_WITHIN, "{} are left", count());
        pause().await;
    }
}

#[tokio::test]
async fn nothing_of_a_snippet_is_left_once_the_next_server_starts() {
    let (place, data, database) = (directory(), python_data(), TestDatabase::new().await);
    let mark = place.path().file_name().unwrap().to_str().unwrap();
    let storage = format!("file://{}", place.path().join("objects").display());
    let settings = [
        ("DATABASE_URL", database.url()),
        ("LABDATA_DATA_DIR", data.to_str().unwrap()),
        ("LABDATA_STORAGE_URL", &storage),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
    ];
    let serve = || Program::serve_with(place.path(), &["--no-worker"], &settings);
    let server = serve();
    // A child in another session outlives the snippet, where nothing ends it.
    let code = format!(
        "import subprocess, sys, time\nopen('{mark}', 'w')\n\
         subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'], \
         start_new_session=True)\ntime.sleep(600)"
    );
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "run_python", "arguments": { "code": code } } });
    let call = reqwest::Client::new()
        .post(format!("{}/mcp", server.url))
        .bearer_auth(KEY)
        .header("accept", "application/json, text/event-stream")
        .json(&message)
        .send();
    let call = tokio::spawn(call);
    while processes(mark) == 0 {
        assert!(!call.is_finished(), "{:?}", call.await);
        pause().await;
    }
    assert_eq!(workspaces(&data, mark), 1);

    // With `kill -9`.
    drop(server);
    until_gone(|| processes(mark)).await;
    let _next = serve();
    until_gone(|| workspaces(&data, mark)).await;
}
