//! Trainings by the built program, and what is left when a part of it is killed. Looks into `/proc`, so on
//! Linux alone.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::platform_trainings::{self, dataset, ended, train, until_fitting};
use crate::{
    process::{directory, kill},
    work::platform_runs::{KEY, Lab, Worker, pause},
};

/// Time in which processes must have ended, and workspaces be gone.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// Seconds of a fit that uses all its time.
const LIMIT: (&str, &str) = ("LABDATA_TRAINING_TIME_LIMIT", "40");

/// Processes of trainings: command lines by process id.
fn processes(directory: &Path) -> BTreeMap<String, String> {
    let workers = format!("{}/.labdata/jobs/workers/", directory.display());
    platform_trainings::processes(&workers)
}

/// Workspaces of trainings.
fn workspaces(directory: &Path) -> Vec<PathBuf> {
    let Ok(workers) = fs::read_dir(directory.join(".labdata/jobs/workers")) else {
        return Vec::new();
    };
    let workspaces = workers
        .flatten()
        .filter_map(|worker| fs::read_dir(worker.path()).ok());
    let paths = workspaces.flatten().flatten().map(|entry| entry.path());
    // That of scripts without dependencies stays as long as its worker.
    paths.filter(|path| !path.ends_with("python")).collect()
}

async fn until_no_process_is_left(directory: &Path) {
    let began = Instant::now();
    while !processes(directory).is_empty() {
        assert!(began.elapsed() < ENDED_WITHIN, "{:?}", processes(directory));
        pause().await;
    }
}

/// A version is ready before its workspace is removed.
async fn until_nothing_is_left(directory: &Path) {
    until_no_process_is_left(directory).await;
    let began = Instant::now();
    while !workspaces(directory).is_empty() {
        assert!(
            began.elapsed() < ENDED_WITHIN,
            "{:?}",
            workspaces(directory)
        );
        pause().await;
    }
}

// One test, as the packages of the trainer are installed once for a directory.
#[tokio::test]
async fn trainings_outlive_a_killed_worker_and_server_and_fail_when_their_process_is_killed() {
    let directory = directory();
    let rows = outlive_a_killed_worker(directory.path()).await;
    outlive_a_killed_server(directory.path(), &rows).await;
}

/// Returns the dataset.
async fn outlive_a_killed_worker(place: &Path) -> Value {
    let lab = Lab::start_with(place, &["--no-worker"], &[LIMIT]);
    let rows = dataset(&lab).await;
    let body = json!({"name": "x", "dataset_id": rows, "target_column": "label"});
    let (status, text) = lab.ask(KEY, Method::POST, "/ml-models", body).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
    assert!(text.contains("no worker that trains models"), "{text}");

    let mut first = Worker::start_with(place, lab.url(), &[LIMIT]);
    let resumed = train(&lab, &rows, "best_quality", json!({"name": "resumed"})).await;
    let started = until_fitting(&lab, &resumed, &Value::Null).await;
    first.kill();
    until_no_process_is_left(place).await;

    // Two workers, of which one resumes the training: the other waits, or trains something else.
    let _workers = [
        Worker::start_with(place, lab.url(), &[LIMIT]),
        Worker::start_with(place, lab.url(), &[LIMIT]),
    ];
    until_fitting(&lab, &resumed, &started).await;
    let running = processes(place);
    let trainer = running.iter().find(|(_, line)| line.contains("script.py"));
    let (id, _) = trainer.unwrap_or_else(|| panic!("{running:?}"));
    kill("9", id);
    let failed = ended(&lab, &resumed).await;
    assert_eq!(failed["status"], "failed");
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.contains("ran out of memory"), "{message}");
    until_no_process_is_left(place).await;

    let next = json!({"ml_model_id": resumed["id"]});
    let again = train(&lab, &rows, "medium_quality", next).await;
    let ready = ended(&lab, &again).await;
    assert_eq!(ready["status"], "ready", "{ready}");
    assert_eq!(ready["currently_active"], true);
    until_nothing_is_left(place).await;
    rows
}

async fn outlive_a_killed_server(place: &Path, rows: &Value) {
    let lab = Lab::start_with(place, &[], &[LIMIT]);
    let queued = train(&lab, rows, "medium_quality", json!({"name": "x"})).await;
    until_fitting(&lab, &queued, &Value::Null).await;
    // With `kill -9`.
    drop(lab);
    until_no_process_is_left(place).await;

    let lab = Lab::start_with(place, &[], &[LIMIT]);
    let ready = ended(&lab, &queued).await;
    assert_eq!(ready["status"], "ready", "{ready}");
    until_nothing_is_left(place).await;
}
