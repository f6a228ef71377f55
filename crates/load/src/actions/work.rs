//! Runs, triggers, the agent and trainings.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    actions::{files, resources},
    client::{Payload, Request, text_of},
    ledger::Kind,
    load::{Connection, Load},
};

/// Interval at which an open run is read.
const POLL: Duration = Duration::from_millis(500);

/// Runs a job, unless enough runs wait for a worker.
pub(super) async fn run(connection: &mut Connection) {
    let Ok(place) = Arc::clone(&connection.load.open_runs).try_acquire_owned() else {
        return;
    };
    let tag = connection.tag();
    let job = connection.load.lab.run_job.clone();
    let body = json!({"parameters": {"tag": tag}});
    let path = format!("/api/v1/jobs/{job}/run");
    let request = Request::post("POST /jobs/{id}/run", path, body).idempotent(&tag);
    let state = Some(String::new());
    if let Some(response) = connection.change(&request, Kind::Run, &tag, state).await {
        let id = response.text("job_execution_id");
        tokio::spawn(watch_run(Arc::clone(&connection.load), id, place));
    }
}

/// Reads a run until it ends, then its log.
async fn watch_run(load: Arc<Load>, id: String, _place: OwnedSemaphorePermit) {
    let path = format!("/api/v1/job-executions/{id}");
    let request = Request::get("GET /job-executions/{id}", path.clone());
    while Instant::now() < load.ends_at {
        tokio::time::sleep(POLL).await;
        let status = load
            .client
            .expect(&request)
            .await
            .map(|response| response.text("status"));
        if status.is_some_and(|status| status != "queued" && status != "running") {
            let log = Request::get("GET /job-executions/{id}/logs", format!("{path}/logs"));
            load.client.expect(&log).await;
            return;
        }
    }
}

/// Uploads a file that triggers a run, unless enough runs wait for a worker.
pub(super) async fn trigger(connection: &mut Connection) {
    let Ok(place) = Arc::clone(&connection.load.open_runs).try_acquire_owned() else {
        return;
    };
    let name = format!("{}.csv", connection.tag());
    let owner = (
        "instrument_id",
        connection.load.lab.trigger_instrument.clone(),
    );
    if let Some(file) = files::upload_as(connection, name, owner).await {
        // A deleted file could delete its trigger's event too.
        connection.files.retain(|owned| owned.id != file);
        tokio::spawn(watch_trigger(Arc::clone(&connection.load), file, place));
    }
}

/// Reads the job's latest executions until that of the file ends.
async fn watch_trigger(load: Arc<Load>, file: String, _place: OwnedSemaphorePermit) {
    let job = &load.lab.trigger_job;
    let path = format!("/api/v1/job-executions?job_id={job}&limit=20");
    let request = Request::get("GET /job-executions", path);
    while Instant::now() < load.ends_at {
        tokio::time::sleep(POLL).await;
        let Some(response) = load.client.expect(&request).await else {
            continue;
        };
        let response = response.json();
        let mut executions = response.as_array().into_iter().flatten();
        let fired = executions.find(|found| text_of(found, "trigger_file_id") == file);
        let status = fired.map(|fired| text_of(fired, "status"));
        if status.is_some_and(|status| status != "queued" && status != "running") {
            return;
        }
    }
}

/// Asks the agent.
pub(super) async fn agent(connection: &mut Connection) {
    let stream = connection.random.below(2) == 0;
    let body = json!({"prompt": "Which tables are there?", "stream": stream, "save": !stream});
    let request = Request::post("POST /agent/runs", "/api/v1/agent/runs", body).once();
    if let Some(response) = connection.load.client.expect(&request).await
        && stream
        && !String::from_utf8_lossy(&response.body).contains("event: result")
    {
        let client = &connection.load.client;
        client.wrong(&request, &response, "ended without a result");
    }
}

/// Trains a model on a fresh dataset.
pub(super) async fn training(connection: &mut Connection) {
    const QUERY: &str = "SELECT n % 7 AS a, n % 3 AS b, (n % 7) * 2.0 + n % 3 AS c \
                         FROM generate_series(1, 200) AS n";
    if !connection.load.may_train() {
        return;
    }
    let Some(dataset) = resources::create_dataset(connection, QUERY).await else {
        return;
    };
    let tag = connection.tag();
    let body: Value = json!({
        "name": tag, "dataset_id": dataset, "target_column": "c", "problem_type": "regression",
        "quality_preset": "medium_quality",
    });
    let request = Request::new(
        "POST /ml-models",
        Method::POST,
        "/api/v1/ml-models",
        Payload::Json(body),
    )
    .idempotent(&tag);
    let state = Some("1".to_owned());
    connection.change(&request, Kind::Model, &tag, state).await;
}
