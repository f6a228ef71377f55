//! Servers with jobs.

use serde_json::{Value, json};

use crate::server::{Client, TestServer};

/// Path of the list.
pub(super) const PATH: &str = "/api/v1/jobs";

/// A server with off-platform jobs of these names.
pub(super) async fn with_jobs(names: &[&str]) -> TestServer {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for name in names {
        server.clock.advance(time::Duration::seconds(1));
        client
            .post("/api/v1/job-executions", &json!({"job_name": name}))
            .await
            .json(200);
    }
    server
}

/// The answer to the creation of a job.
/// Creates a job and returns the answer.
pub(super) async fn created(client: &Client, name: &str, code: &str) -> Value {
    let body = json!({"name": name, "code": code});
    client.post(PATH, &body).await.json(200)
}

/// Path of a job.
pub(super) fn path_of(job: &Value) -> String {
    format!("{PATH}/{}", job["id"].as_str().unwrap())
}
