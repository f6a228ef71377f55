//! Backfills: runs of a job for files that were uploaded earlier.

use labdata_ports::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use time::{Duration, format_description::well_known::Rfc3339};

use super::run_lab::{EXECUTIONS, Lab};
use crate::{files::Form, server::send};

struct Files {
    lab: Lab,
    instrument: String,
}

impl Files {
    async fn start() -> Self {
        let lab = Lab::without_worker().await;
        let reader = json!({"name": "reader"});
        let reader = lab
            .client
            .post("/api/v1/instruments", &reader)
            .await
            .json(200);
        Self {
            instrument: reader["id"].as_str().unwrap().to_owned(),
            lab,
        }
    }

    /// Uploads a file, a minute after the one before.
    async fn upload(&self, name: &str) -> String {
        self.lab.server.clock.advance(Duration::minutes(1));
        let form = Form::new()
            .field("instrument_id", &self.instrument)
            .file(name, b"a\n1\n");
        let stored = form.post(&self.lab.client).await.json(200);
        stored["file_id"].as_str().unwrap().to_owned()
    }

    fn now(&self) -> String {
        self.lab.server.clock.now().format(&Rfc3339).unwrap()
    }

    async fn triggered(&self, conditions: Value) -> String {
        let job = json!({"name": "parse", "code": "pass", "trigger_enabled": true,
            "trigger_category": "file_uploaded", "trigger_conditions": conditions});
        self.lab.job_of(job).await
    }
}

fn path(job: &str) -> String {
    format!("/api/v1/jobs/{job}/backfill")
}

#[tokio::test]
async fn each_file_of_the_trigger_is_one_run_oldest_first() {
    let files = Files::start().await;
    let first = files.upload("1.csv").await;
    files.upload("notes.txt").await;
    let second = files.upload("2.csv").await;
    let client = &files.lab.client;
    let job = files.triggered(json!({"file_extensions": ["csv"]})).await;
    let dry = client
        .post(&path(&job), &json!({"dry_run": true}))
        .await
        .json(200);
    let expected = json!({"count": 2, "files": [first, second], "execution_ids": []});
    assert_eq!(dry, expected);
    assert_eq!(client.get(EXECUTIONS).await.json(200), json!([]));

    let done = client.post_raw(&path(&job), "").await.json(200);
    assert_eq!(
        (&done["count"], &done["files"]),
        (&json!(2), &json!([first, second]))
    );
    let me = client.get("/api/v1/me").await.json(200);
    for (file, execution) in [&first, &second].into_iter().zip(0..) {
        let id = done["execution_ids"][execution].as_str().unwrap();
        let execution = files.lab.execution(id).await;
        assert_eq!(execution["status"], "queued");
        assert_eq!(execution["trigger_file_id"], file.as_str());
        assert_eq!(execution["script_version"], 1);
        assert_eq!(execution["started_by"]["user"]["id"], me["user"]["id"]);
        assert_eq!(execution["started_by"]["trigger_id"], Value::Null);
    }
    let again = client
        .post(&path(&job), &json!({"only": "never_run"}))
        .await
        .json(200);
    assert_eq!(again, json!({"count": 0, "files": [], "execution_ids": []}));
}

#[tokio::test]
async fn the_time_from_which_files_count_is_included_and_the_end_is_not() {
    let files = Files::start().await;
    files.upload("1.csv").await;
    let second = files.upload("2.csv").await;
    let from = files.now();
    files.upload("3.csv").await;
    let to = files.now();
    let job = files.triggered(json!({})).await;
    let body = json!({"uploaded_from": from, "uploaded_to": to, "instrument_id": files.instrument});
    let done = files.lab.client.post(&path(&job), &body).await.json(200);
    assert_eq!(done["files"], json!([second]));
}

#[tokio::test]
async fn a_job_without_a_file_trigger_runs_named_files_only() {
    let files = Files::start().await;
    let first = files.upload("1.csv").await;
    let second = files.upload("2.csv").await;
    let job = files.lab.job("pass").await;
    let client = &files.lab.client;
    let refused = client.post(&path(&job), &json!({})).await.json(400);
    assert_eq!(refused["code"], "invalid_trigger");
    let named = json!({"file_ids": [second, first]});
    let done = client.post(&path(&job), &named).await.json(200);
    assert_eq!(done["files"], json!([first, second]));
    let unknown = "0191d5a4-0000-7000-8000-000000000000";
    for id in ["nonsense", unknown] {
        let body = json!({"file_ids": [first, id]});
        client.post(&path(&job), &body).await.json(404);
        client.post(&path(id), &json!({})).await.json(404);
        let body = json!({"instrument_id": id});
        client.post(&path(&job), &body).await.json(404);
    }
    let both = json!({"file_ids": [first], "uploaded_to": files.now()});
    for (body, field) in [
        (both, "file_ids"),
        (json!({"file_ids": []}), "file_ids"),
        (json!({"only": "some"}), "only"),
        (json!({"uploaded_from": "yesterday"}), "uploaded_from"),
    ] {
        let problems = client.post(&path(&job), &body).await.problems();
        assert_eq!(problems[0].1, format!("body.{field}"), "{body}");
    }
    let stranger = files.lab.server.stranger().await;
    stranger.post(&path(&job), &json!({})).await.json(404);
    let runs = client.get(EXECUTIONS).await.json(200);
    assert_eq!(runs.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_backfill_with_one_idempotency_key_runs_once() {
    let files = Files::start().await;
    files.upload("1.csv").await;
    let job = files.triggered(json!({})).await;
    let client = &files.lab.client;
    let post = async || {
        let request = client
            .request(Method::POST, &path(&job))
            .header("idempotency-key", "once")
            .json(&json!({}));
        send(request).await.json(200)
    };
    let first = post().await;
    assert_eq!(post().await, first);
    let runs = client.get(EXECUTIONS).await.json(200);
    assert_eq!(runs.as_array().unwrap().len(), 1);
}
