//! Tables, instruments and jobs of a load.

use anyhow::{Context, bail};
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Client, Outcome, Payload, Request, Response};

/// Script of all jobs.
const SCRIPT: &str = include_str!("../assets/run.py");

/// Ids of what a load is about.
#[derive(Clone, Debug)]
pub(crate) struct Lab {
    /// Instrument whose files trigger nothing.
    pub(crate) instrument: String,
    /// Instrument whose files trigger [`Lab::trigger_job`].
    pub(crate) trigger_instrument: String,
    /// Job that requests run.
    pub(crate) run_job: String,
    /// Job that runs for each file of [`Lab::trigger_instrument`].
    pub(crate) trigger_job: String,
    /// Job that runs for each completed run of [`Lab::trigger_job`].
    pub(crate) chain_job: String,
}

impl Lab {
    /// Creates everything.
    ///
    /// # Errors
    /// The first request that is refused.
    pub(crate) async fn prepare(client: &Client, run: &str) -> anyhow::Result<Self> {
        for (name, definition) in tables() {
            let request = define(name, definition);
            done(client, &request).await?;
        }
        let instrument = instrument(client, &format!("Load {run}")).await?;
        let trigger_instrument = self::instrument(client, &format!("Load {run} triggers")).await?;
        let run_job = job(client, run, "run", &json!({})).await?;
        let on_upload = json!({
            "trigger_enabled": true,
            "trigger_category": "file_uploaded",
            "trigger_instrument_id": trigger_instrument,
        });
        let trigger_job = job(client, run, "on upload", &on_upload).await?;
        let on_completion = json!({
            "trigger_enabled": true,
            "trigger_category": "job_completed",
            "trigger_conditions": {"source_job_id": trigger_job},
        });
        let chain_job = job(client, run, "on completion", &on_completion).await?;
        Ok(Self {
            instrument,
            trigger_instrument,
            run_job,
            trigger_job,
            chain_job,
        })
    }

    /// The jobs whose runs a worker executes.
    pub(crate) fn jobs(&self) -> [&str; 3] {
        [&self.run_job, &self.trigger_job, &self.chain_job]
    }
}

/// A definition of a table.
pub(crate) fn define(name: &str, definition: Value) -> Request {
    Request::new(
        "PUT /tables/{name}",
        Method::PUT,
        format!("/api/v1/tables/{name}"),
        Payload::Json(definition),
    )
}

/// A column that holds a value in every row.
pub(crate) fn column(name: &str, data_type: &str) -> Value {
    json!({"name": name, "data_type": data_type, "is_nullable": false})
}

fn tables() -> [(&'static str, Value); 5] {
    let unique = |name| json!({"name": name, "data_type": "string", "is_nullable": false, "is_unique": true});
    let sample = json!({
        "name": "sample", "data_type": "string", "references": "load_sample", "is_nullable": false,
    });
    let curated = |columns: &[Value]| json!({"semantic_category": "curated", "columns": columns});
    // Names of samples are not unique, so that a doubled write is seen rather than refused.
    let run = column("run", "string");
    [
        (
            "load_sample",
            curated(&[
                run.clone(),
                column("name", "string"),
                column("counter", "integer"),
            ]),
        ),
        (
            "load_reading",
            curated(&[
                run.clone(),
                column("name", "string"),
                column("counter", "integer"),
                sample.clone(),
            ]),
        ),
        (
            "load_plate",
            curated(&[run.clone(), unique("name"), column("counter", "integer")]),
        ),
        (
            "load_run",
            curated(&[run, unique("execution"), column("source", "string")]),
        ),
        (
            "load_curve",
            json!({"semantic_category": "raw", "columns": [
                sample, column("order", "integer"), column("value", "integer"),
            ]}),
        ),
    ]
}

async fn instrument(client: &Client, name: &str) -> anyhow::Result<String> {
    let body = json!({"name": name});
    let request = Request::post("POST /instruments", "/api/v1/instruments", body).idempotent(name);
    id(&done(client, &request).await?)
}

async fn job(client: &Client, run: &str, name: &str, trigger: &Value) -> anyhow::Result<String> {
    let name = format!("Load {run} {name}");
    let mut body = json!({
        "name": name,
        "code": SCRIPT.replace("@RUN@", run),
        "parameter_definitions": [{"widget_type": "text", "parameter_name": "tag"}],
    });
    if let (Some(body), Some(trigger)) = (body.as_object_mut(), trigger.as_object()) {
        body.extend(trigger.clone());
    }
    let request = Request::post("POST /jobs", "/api/v1/jobs", body).idempotent(name);
    id(&done(client, &request).await?)
}

fn id(response: &Response) -> anyhow::Result<String> {
    let id = response.text("id");
    (!id.is_empty())
        .then_some(id)
        .context("an answer has no id")
}

async fn done(client: &Client, request: &Request) -> anyhow::Result<Response> {
    match client.send(request).await {
        Outcome::Done(response) => Ok(response),
        Outcome::Refused(response) => bail!(
            "{}: {} {}",
            request.endpoint,
            response.status,
            String::from_utf8_lossy(&response.body)
        ),
        Outcome::Unknown => bail!("{}: the servers do not answer", request.endpoint),
    }
}
