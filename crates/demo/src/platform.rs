//! The same file again, uploaded for an instrument whose files a job parses.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::client::Client;

/// The job's script; it needs only the standard library.
const SCRIPT: &str = include_str!("../assets/parse_growth_curves.py");

/// Maximum time to wait for the run.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);

/// Prefixes of error messages of runs whose script was not started.
const NOT_STARTED: [&str; 2] = ["preparing failed", "the script cannot be run"];

/// Outcome of the job's run.
pub(crate) enum RunOutcome {
    /// The script wrote the file's contents.
    Completed(CompletedRun),
    /// This machine cannot run scripts, for this reason.
    Unsupported(String),
}

/// A run that completed.
pub(crate) struct CompletedRun {
    /// Id of its execution.
    pub(crate) execution: String,
    /// Last line of its log.
    pub(crate) last_line: String,
}

/// Creates an instrument and a job that runs for each file uploaded for it; returns both ids.
///
/// # Errors
/// When the platform refuses either.
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

/// Waits for the run that the upload of `file_id` triggered.
///
/// # Errors
/// When no run ends in time, or the script fails.
pub(crate) async fn triggered_run(
    client: &Client,
    job: &str,
    file_id: &str,
) -> anyhow::Result<RunOutcome> {
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
            began.elapsed() < RUN_TIMEOUT,
            "the upload's job has not ended after {} s: {executions}",
            RUN_TIMEOUT.as_secs()
        );
        sleep(Duration::from_millis(20)).await;
    };
    let error = ended.get("error_message").and_then(Value::as_str);
    let error = error.unwrap_or_default();
    if NOT_STARTED.iter().any(|begins| error.starts_with(begins)) {
        return Ok(RunOutcome::Unsupported(error.to_owned()));
    }
    ensure!(
        text(&ended, "status")? == "completed",
        "the script failed: {error}"
    );
    let execution = text(&ended, "job_execution_id")?.to_owned();
    let log = client
        .read_text(&format!("/api/v1/job-executions/{execution}/logs"))
        .await?;
    let last_line = log.lines().next_back().unwrap_or_default().to_owned();
    Ok(RunOutcome::Completed(CompletedRun {
        execution,
        last_line,
    }))
}

fn text<'v>(value: &'v Value, field: &str) -> anyhow::Result<&'v str> {
    let text = value.get(field).and_then(Value::as_str);
    text.with_context(|| format!("no {field} in {value}"))
}
