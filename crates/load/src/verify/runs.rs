//! Executions, runs, triggers, events and keys.

use std::{
    collections::{HashMap, HashSet},
    sync::PoisonError,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::Verification;
use crate::client::{Outcome, Request, text_of};

/// Interval at which unfinished work is read.
const POLL: Duration = Duration::from_millis(500);

/// Start of the message of a run that failed because its worker was lost.
const WORKER_LOST: &str = "the worker that ran it was lost";

impl Verification<'_> {
    /// Waits until no run is queued or running and every trigger has fired; what is left is stuck.
    pub(super) async fn settle(&self, until: Instant) -> anyhow::Result<Vec<String>> {
        loop {
            let open = self.open_work().await?;
            if open.is_empty() || Instant::now() > until {
                return Ok(open);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn open_work(&self) -> anyhow::Result<Vec<String>> {
        let mut open = Vec::new();
        let lab = &self.load.lab;
        for job in lab.jobs() {
            for status in ["queued", "running"] {
                let path = format!("/api/v1/job-executions?job_id={job}&status={status}");
                let executions = self.list(&path).await?;
                open.extend(executions.iter().map(|execution| {
                    format!(
                        "Run {} is stuck: {status}",
                        text_of(execution, "job_execution_id")
                    )
                }));
            }
        }
        let (files, fired) = (
            self.triggering_files().await?,
            self.of_job(&lab.trigger_job).await?,
        );
        let fired_for: HashSet<String> = fired
            .iter()
            .map(|execution| text_of(execution, "trigger_file_id"))
            .collect();
        let missing = files.iter().filter(|file| !fired_for.contains(*file));
        open.extend(missing.map(|file| format!("Trigger of file {file} has not fired")));
        let completed = completed(&fired);
        let chained = first_attempts(&self.of_job(&lab.chain_job).await?).count();
        if chained < completed.len() {
            let expected = completed.len();
            open.push(format!(
                "Triggers of {expected} completed runs fired {chained} times"
            ));
        }
        let models = self.list("/api/v1/ml-models").await?;
        let models = models.iter().filter(|model| {
            let is_own = text_of(model, "name").starts_with(&self.load.run);
            is_own && ["pending", "training"].contains(&text_of(model, "status").as_str())
        });
        open.extend(models.map(|model| format!("Training {} is stuck", text_of(model, "name"))));
        Ok(open)
    }

    /// Every file that can trigger a run did so once, every completed run triggered one, and every
    /// completed run recorded itself.
    pub(super) async fn runs(&self) -> anyhow::Result<Vec<String>> {
        let lab = &self.load.lab;
        let mut problems = Vec::new();
        let fired = self.of_job(&lab.trigger_job).await?;
        let mut by_file: HashMap<String, usize> = HashMap::new();
        for execution in first_attempts(&fired) {
            *by_file
                .entry(text_of(execution, "trigger_file_id"))
                .or_default() += 1;
        }
        for file in self.triggering_files().await? {
            let count = by_file.remove(&file).unwrap_or_default();
            if count != 1 {
                problems.push(format!("Trigger of file {file} fired {count} times"));
            }
        }
        problems.extend(
            by_file
                .keys()
                .map(|file| format!("Trigger fired for {file}, no such file")),
        );
        let chained = self.of_job(&lab.chain_job).await?;
        let expected = completed(&fired);
        let chains = first_attempts(&chained).count();
        if chains != expected.len() {
            problems.push(format!(
                "Triggers of {} completed runs fired {} times",
                expected.len(),
                chains
            ));
        }
        let recorded = self.read("load_run", &["execution", "source"]).await?;
        let sources: HashMap<String, String> = recorded
            .iter()
            .map(|row| (text_of(row, "execution"), text_of(row, "source")))
            .collect();
        let mut seen = HashSet::new();
        for execution in &chained {
            let id = text_of(execution, "job_execution_id");
            // The one that retries it has the same source.
            if execution["retried_by"].is_string() {
                continue;
            }
            if let Some(source) = sources.get(&id)
                && !(expected.contains(source) && seen.insert(source.clone()))
            {
                problems.push(format!(
                    "Trigger of run {source} fired more than once, or for nothing"
                ));
            }
        }
        let run = self.of_job(&lab.run_job).await?;
        for execution in run.iter().chain(&fired).chain(&chained) {
            let (id, status) = (
                text_of(execution, "job_execution_id"),
                text_of(execution, "status"),
            );
            let message = text_of(execution, "error_message");
            let is_recorded = sources.contains_key(&id);
            if status == "completed" && !is_recorded {
                problems.push(format!("Run {id} completed, but its row is lost"));
            }
            if status == "failed" && !message.starts_with(WORKER_LOST) {
                problems.push(format!("Run {id} failed: {message}"));
            }
        }
        Ok(problems)
    }

    /// Executions that requests start: the acknowledged ones exist, and at most as many others as
    /// requests without a response.
    pub(super) async fn executions(&self) -> anyhow::Result<Vec<String>> {
        let mut problems = Vec::new();
        let load = self.load;
        for name in [load.writes_job(), load.opened_job()] {
            let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
            let jobs = self.get(&format!("/api/v1/jobs?name={encoded}")).await?;
            let job = jobs
                .pointer("/0/id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let found = if job.is_empty() {
                Vec::new()
            } else {
                self.of_job(job).await?
            };
            let expected = load.ledger.executions(&name);
            let mut others = 0;
            let mut missing: HashSet<&String> = expected.acknowledged.keys().collect();
            for execution in &found {
                let (id, status) = (
                    text_of(execution, "job_execution_id"),
                    text_of(execution, "status"),
                );
                match expected.acknowledged.get(&id) {
                    Some(statuses) if statuses.contains(&status.as_str()) => {}
                    Some(statuses) => problems.push(format!(
                        "Execution {id} under {name}: {status} is not of {statuses:?}"
                    )),
                    None => others += 1,
                }
                missing.remove(&id);
            }
            problems.extend(
                missing
                    .iter()
                    .map(|id| format!("Execution {id} under {name}: lost")),
            );
            if others > expected.unknown {
                problems.push(format!(
                    "{others} executions under {name} were not acknowledged, but only {} requests \
                     had no answer",
                    expected.unknown
                ));
            }
        }
        Ok(problems)
    }

    /// Every file was announced once.
    pub(super) async fn events(&self, until: Instant) -> anyhow::Result<Vec<String>> {
        let path = format!("/api/v1/files?query={}-", self.load.run);
        let files = self.list(&path).await?;
        let ids: Vec<String> = files.iter().map(|file| text_of(file, "file_id")).collect();
        loop {
            let wrong = ids.iter().filter_map(|id| {
                let count = self.follower.confirmations(id);
                (count != 1).then(|| format!("File {id}: {count} events file.confirmed"))
            });
            let wrong: Vec<String> = wrong.collect();
            if wrong.is_empty() || Instant::now() > until {
                return Ok(wrong);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Revoked keys are refused.
    pub(super) async fn revoked_keys(&self, until: Instant) -> anyhow::Result<Vec<String>> {
        let keys = self
            .load
            .revoked_keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for key in keys {
            let request = Request::get("check", "/api/v1/me").with_key(&key);
            loop {
                match self.client.send(&request).await {
                    Outcome::Refused(response) if response.status == 401 => break,
                    _ if Instant::now() > until => {
                        return Ok(vec!["a revoked key is accepted".to_owned()]);
                    }
                    _ => tokio::time::sleep(POLL).await,
                }
            }
        }
        Ok(Vec::new())
    }

    async fn of_job(&self, job: &str) -> anyhow::Result<Vec<Value>> {
        self.list(&format!("/api/v1/job-executions?job_id={job}"))
            .await
    }

    async fn triggering_files(&self) -> anyhow::Result<Vec<String>> {
        let instrument = &self.load.lab.trigger_instrument;
        let files = self
            .list(&format!("/api/v1/files?instrument_id={instrument}"))
            .await?;
        Ok(files.iter().map(|file| text_of(file, "file_id")).collect())
    }
}

/// Executions that retry no other: one for each trigger that fired.
pub(super) fn first_attempts(executions: &[Value]) -> impl Iterator<Item = &Value> {
    executions
        .iter()
        .filter(|execution| execution["retry_of"].is_null())
}

/// Ids of the completed executions.
fn completed(executions: &[Value]) -> HashSet<String> {
    let completed = executions
        .iter()
        .filter(|execution| text_of(execution, "status") == "completed");
    completed
        .map(|execution| text_of(execution, "job_execution_id"))
        .collect()
}
