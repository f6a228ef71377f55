//! The same file once more, parsed by a job that runs on the platform.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::client::Client;

/// The script of the job: standard library only.
const SCRIPT: &str = include_str!("../../demo/parse_growth_curves.py");

/// How long the story waits for the script.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the run of the job went.
pub(crate) enum Parsed {
    /// It wrote what the file holds, and says so.
    Done(String),
    /// This machine cannot run scripts; why.
    NotHere(String),
}

/// Creates the job and runs it on that file.
///
/// # Errors
/// When the script runs, but not as it should.
pub(crate) async fn parse_there(client: &Client, file_id: &str) -> anyhow::Result<Parsed> {
    let job = json!({"name": "Parse growth curves", "code": SCRIPT});
    let job = client.post("/api/v1/jobs", &job).await?;
    let path = format!("/api/v1/jobs/{}/run", text(&job, "id")?);
    let run = client.post(&path, &json!({"file_id": file_id})).await?;
    let id = text(&run, "job_execution_id")?.to_owned();
    let path = format!("/api/v1/job-executions/{id}");
    let began = Instant::now();
    let ended = loop {
        let execution = client.get(&path).await?;
        if text(&execution, "status")? != "queued" && text(&execution, "status")? != "running" {
            break execution;
        }
        if began.elapsed() > PATIENCE {
            client.post(&format!("{path}/cancel"), &Value::Null).await?;
            return Ok(Parsed::NotHere("the script did not end in time".to_owned()));
        }
        sleep(Duration::from_millis(20)).await;
    };
    let error = ended.get("error_message").and_then(Value::as_str);
    let error = error.unwrap_or_default();
    if error.starts_with("preparing failed") {
        return Ok(Parsed::NotHere(error.to_owned()));
    }
    ensure!(
        text(&ended, "status")? == "completed",
        "the script failed: {error}"
    );
    Ok(Parsed::Done(id))
}

fn text<'v>(value: &'v Value, field: &str) -> anyhow::Result<&'v str> {
    let text = value.get(field).and_then(Value::as_str);
    text.with_context(|| format!("no {field} in {value}"))
}
