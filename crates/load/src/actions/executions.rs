//! Executions of scripts outside the platform.

use reqwest::Method;
use serde_json::json;

use crate::{
    client::{Outcome, Payload, Request},
    ledger::{Certainty, Kind},
    load::{Connection, Load},
};

/// Opens an execution; returns its id.
pub(crate) async fn open(load: &Load, tag: &str) -> Option<String> {
    let job = load.opened_job();
    let body = json!({"job_name": job, "timeout_minutes": 600});
    let request = Request::post("POST /job-executions", "/api/v1/job-executions", body)
        .idempotent(format!("open-{tag}"));
    match load.client.send(&request).await {
        Outcome::Done(response) => {
            let id = response.text("job_execution_id");
            load.ledger
                .enter_execution(&job, Some(id.clone()), "running");
            Some(id)
        }
        Outcome::Unknown => {
            load.ledger.enter_execution(&job, None, "running");
            None
        }
        Outcome::Refused(response) => {
            load.client.wrong(&request, &response, "was not expected");
            None
        }
    }
}

/// Closes an execution.
pub(crate) async fn close(load: &Load, id: &str) {
    let request = Request::new(
        "PATCH /job-executions/{id}",
        Method::PATCH,
        format!("/api/v1/job-executions/{id}"),
        Payload::Json(json!({"status": "completed"})),
    );
    let certainty = match load.client.send(&request).await {
        Outcome::Done(_) => Certainty::Acknowledged,
        Outcome::Unknown => Certainty::Unknown,
        Outcome::Refused(response) => {
            return load.client.wrong(&request, &response, "was not expected");
        }
    };
    load.ledger
        .end_execution(&load.opened_job(), id, "completed", certainty);
}

/// Opens an execution, writes under it, reads what it changed, and closes it.
pub(super) async fn open_write_and_close(connection: &mut Connection) {
    let tag = connection.tag();
    let load = connection.load.clone();
    let Some(id) = open(&load, &tag).await else {
        return;
    };
    write(connection, &tag, &id).await;
    let changes = format!("/api/v1/job-executions/{id}/changes");
    let changes = Request::get("GET /job-executions/{id}/changes", changes);
    load.client.expect(&changes).await;
    let read = Request::get(
        "GET /job-executions/{id}",
        format!("/api/v1/job-executions/{id}"),
    );
    load.client.expect(&read).await;
    close(&load, &id).await;
}

/// Writes under an execution, and reverts it.
pub(super) async fn revert(connection: &mut Connection) {
    let tag = connection.tag();
    let load = connection.load.clone();
    let Some(id) = open(&load, &tag).await else {
        return;
    };
    // After an unknown write the rows could come after the revert.
    if write(connection, &tag, &id).await {
        let request = Request::new(
            "POST /job-executions/{id}/revert",
            Method::POST,
            format!("/api/v1/job-executions/{id}/revert"),
            Payload::Empty,
        );
        connection.change(&request, Kind::Sample, &tag, None).await;
    }
    close(&load, &id).await;
}

/// Inserts a row under an execution; returns whether it was acknowledged.
async fn write(connection: &Connection, tag: &str, execution: &str) -> bool {
    let row = json!({"run": connection.load.run, "name": tag, "counter": 3});
    let body = json!({
        "job_execution_id": execution,
        "tables": [{"table": "load_sample", "rows": [row]}],
    });
    let request = connection.write(tag, body);
    let written = connection.change(&request, Kind::Sample, tag, Some("3".to_owned()));
    written.await.is_some()
}
