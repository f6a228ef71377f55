//! The program, with workers beside it, and a client.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::support::{KEY, Server};

/// The Python of scripts, here and on the platform.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

pub(crate) struct Bench {
    http: reqwest::Client,
    database: Client,
    server: Server,
}

impl Bench {
    /// Starts a server with these arguments and this number of workers.
    pub(crate) async fn start(arguments: &[&str], workers: usize) -> Self {
        let mut server = Server::start_as(arguments, &[("LABDATA_PYTHON", PYTHON)]).await;
        for _ in 0..workers {
            server.add_worker();
        }
        Self {
            http: reqwest::Client::new(),
            database: server.database().await,
            server,
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let url = self.server.url(path);
        self.send(self.http.post(url).json(&body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let url = self.server.url(path);
        self.send(self.http.get(url)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Value {
        let response = request.bearer_auth(KEY).send().await.unwrap();
        let ok = response.status().is_success();
        let value: Value = response.json().await.unwrap();
        assert!(ok, "{value}");
        value
    }

    /// A job with that script, and with a trigger where one is given.
    pub(crate) async fn job(&self, name: &str, trigger: &Value, code: &str) -> String {
        let mut body = json!({"name": name, "code": code});
        if let Value::Object(trigger) = trigger.clone() {
            body.as_object_mut().unwrap().extend(trigger);
        }
        id(&self.post("/jobs", body).await, "id")
    }

    pub(crate) async fn instrument(&self, name: &str) -> String {
        id(
            &self.post("/instruments", json!({"name": name})).await,
            "id",
        )
    }

    /// The execution, once it has ended.
    pub(crate) async fn ended(&self, execution: &str) -> Value {
        loop {
            let seen = self.get(&format!("/job-executions/{execution}")).await;
            if !seen["completed_at"].is_null() {
                return seen;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Every execution of a job, page after page.
    pub(crate) async fn all_executions(&self, job: &str) -> Vec<Value> {
        let path = format!("/job-executions?job_id={job}&limit=1000");
        let mut url = self.server.url(&path);
        let mut all = Vec::new();
        loop {
            let response = self.http.get(&url).bearer_auth(KEY).send().await.unwrap();
            let next = response.headers().get("link").map(|link| {
                let link = link.to_str().unwrap();
                link[1..link.find('>').unwrap()].to_owned()
            });
            all.extend(response.json::<Vec<Value>>().await.unwrap());
            match next {
                Some(next) => url = next,
                None => return all,
            }
        }
    }

    /// Uploads a small file up to its confirmation.
    pub(crate) async fn put_file(&self, instrument: &str, name: &str) -> String {
        let body = json!({"file_name": name, "instrument_id": instrument});
        let upload = self.post("/files/upload-url", body).await;
        let mut put = self.http.put(upload["upload_url"].as_str().unwrap());
        for (header, value) in upload["headers"].as_object().unwrap() {
            put = put.header(header, value.as_str().unwrap());
        }
        let stored = put.body("well,value\nA1,0.5\n").send().await.unwrap();
        assert!(stored.status().is_success());
        id(&upload, "file_id")
    }

    pub(crate) async fn confirm(&self, file: &str) {
        self.post(&format!("/files/{file}/confirm-upload"), Value::Null)
            .await;
    }

    /// From the time at which the execution was queued, which the API does not tell, to that at which
    /// it completed.
    pub(crate) async fn queued_to_completed(&self, execution: &str) -> Duration {
        let passed = "SELECT (extract(epoch FROM completed_at - created_at) * 1000000)::bigint \
                      FROM labdata.job_execution WHERE id = $1::text::uuid";
        let row = self
            .database
            .query_one(passed, &[&execution])
            .await
            .unwrap();
        let microseconds: i64 = row.get(0);
        Duration::from_micros(microseconds.try_into().unwrap())
    }

    /// Waits until the query counts `wanted`.
    pub(crate) async fn until_rows(&self, count: &str, wanted: usize) {
        loop {
            let counted: i64 = self.database.query_one(count, &[]).await.unwrap().get(0);
            if usize::try_from(counted) == Ok(wanted) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }
}

fn id(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}
