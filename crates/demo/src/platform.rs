//! The same file once more, this time given to an instrument whose files a job parses.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::client::Client;

/// The script of the job: standard library only.
const SCRIPT: &str = include_str!("../assets/parse_growth_curves.py");

/// How long the story waits for the script.
const PATIENCE: Duration = Duration::from_mins(1);

/// How errors begin of runs whose script was not started.
const NOT_STARTED: [&str; 2] = ["preparing failed", "the script cannot be run"];

/// How the run of the job went.
pub(crate) enum Parsed {
    /// It wrote what the file holds.
    Done(Run),
    /// This machine cannot run scripts; why.
    NotHere(String),
}

/// A run that completed.
pub(crate) struct Run {
    /// Its execution.
    pub(crate) execution: String,
    /// What the script said at last.
    pub(crate) said: String,
}

/// Creates an instrument, and a job that parses whatever is uploaded for it; returns both.
///
/// # Errors
/// When the platform does not take them.
pub(crate) async fn prepare(client: &Client) -> anyhow::Result<(String, String)> {
    let instrument = json!({"name": "Plate reader with a job", "instrument_type": "plate_reader"});
    let instrument = client.post("/api/v1/instruments", &instrument).await?;
    let instrument = text(&instrument, "id")?.to_owned();
    let job = json!({
        "name": "Parse growth curves",
        "description": "Parses what the plate reader exports.",
        "code": SCRIPT,
        "trigger_enabled": true,
        "trigger_category": "file_uploaded",
        "trigger_instrument_id": instrument,
    });
    let job = client.post("/api/v1/jobs", &job).await?;
    Ok((instrument, text(&job, "id")?.to_owned()))
}

/// Waits until the job has parsed that file, which was uploaded: nobody but its trigger starts it.
///
/// # Errors
/// When the script runs, but not as it should, or does not run at all.
pub(crate) async fn parsed(client: &Client, job: &str, file_id: &str) -> anyhow::Result<Parsed> {
    let began = Instant::now();
    let path = format!("/api/v1/job-executions?job_id={job}");
    let ended = loop {
        let executions = client.get(&path).await?;
        let ours = executions.as_array().and_then(|all| {
            all.iter()
                .find(|it| it.get("trigger_file_id").and_then(Value::as_str) == Some(file_id))
        });
        if let Some(execution) = ours
            && execution
                .get("completed_at")
                .is_some_and(|at| !at.is_null())
        {
            break execution.clone();
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "the upload's job has not ended after {} s: {executions}",
            PATIENCE.as_secs()
        );
        sleep(Duration::from_millis(20)).await;
    };
    let error = ended.get("error_message").and_then(Value::as_str);
    let error = error.unwrap_or_default();
    if NOT_STARTED.iter().any(|begins| error.starts_with(begins)) {
        return Ok(Parsed::NotHere(error.to_owned()));
    }
    ensure!(
        text(&ended, "status")? == "completed",
        "the script failed: {error}"
    );
    let execution = text(&ended, "job_execution_id")?.to_owned();
    let log = client
        .read_text(&format!("/api/v1/job-executions/{execution}/logs"))
        .await?;
    let said = log.lines().next_back().unwrap_or_default().to_owned();
    Ok(Parsed::Done(Run { execution, said }))
}

fn text<'v>(value: &'v Value, field: &str) -> anyhow::Result<&'v str> {
    let text = value.get(field).and_then(Value::as_str);
    text.with_context(|| format!("no {field} in {value}"))
}
