//! Runs of real scripts by the built program: servers, workers, and what is left when they die.
//! What is left is looked for in `/proc`, so on Linux alone.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use reqwest::{
    Client, Method, StatusCode,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::process::{Program, directory, kill, labdata};

pub(crate) const KEY: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

/// A script that reports its start and leaves a child in another session.
pub(crate) const LONG: &str = "import subprocess, time\n\
                    print('begun', flush=True)\n\
                    subprocess.Popen(['sleep', '600'], start_new_session=True)\n\
                    time.sleep(600)\n";

/// A `labdata worker`; killed when dropped.
pub(crate) struct Worker(Child);

impl Worker {
    /// Starts it beside a server of the same directory, and waits until it works.
    fn start(directory: &Path, server: &Program) -> Self {
        Self::start_with(directory, &server.url, &[])
    }

    /// The same with settings.
    pub(crate) fn start_with(directory: &Path, url: &str, settings: &[(&str, &str)]) -> Self {
        let mut child = labdata(directory, &["worker"])
            .env("LABDATA_LOG", "warn")
            .env("LABDATA_PUBLIC_URL", url)
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it did not start");
        Self(child)
    }

    /// Sends a signal to it, and not to its scripts.
    fn signal(&self, signal: &str) {
        kill(signal, &self.0.id().to_string());
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Fails when it has ended, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that clients call.
pub(crate) struct Lab {
    server: Program,
    http: Client,
}

impl Lab {
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        Self::start_with(directory, arguments, &[])
    }

    /// The same with settings.
    pub(crate) fn start_with(
        directory: &Path,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> Self {
        let mut environment = vec![("LABDATA_BOOTSTRAP_KEY", KEY)];
        environment.extend(settings);
        Self {
            server: Program::serve_with(directory, arguments, &environment),
            http: Client::new(),
        }
    }

    /// Id of the server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// The answer to a request with that key.
    pub(crate) async fn ask(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> (StatusCode, String) {
        let url = format!("{}/api/v1{path}", self.server.url);
        let request = self.http.request(method, url).bearer_auth(key).json(&body);
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, text) = self.ask(KEY, method, path, body).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn job(&self, name: &str, code: &str) -> String {
        let body = json!({"name": name, "code": code});
        let job = self.call(Method::POST, "/jobs", body).await;
        job["id"].as_str().unwrap().to_owned()
    }

    /// Uploads a file of an instrument; returns its id.
    pub(crate) async fn upload(&self, instrument: &Value, name: &str, bytes: Vec<u8>) -> Value {
        let file = Part::bytes(bytes).file_name(name.to_owned());
        let form = Form::new()
            .text("instrument_id", instrument.as_str().unwrap().to_owned())
            .part("file", file);
        let url = format!("{}/api/v1/files", self.server.url);
        let request = self.http.post(url).bearer_auth(KEY).multipart(form);
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, StatusCode::OK, "{text}");
        let file: Value = serde_json::from_str(&text).unwrap();
        file["file_id"].clone()
    }

    pub(crate) async fn run(&self, job: &str) -> String {
        let path = format!("/jobs/{job}/run");
        let run = self.call(Method::POST, &path, json!({})).await;
        run["job_execution_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn execution(&self, id: &str) -> Value {
        let path = format!("/job-executions/{id}");
        self.call(Method::GET, &path, Value::Null).await
    }

    /// Waits until that execution is retried; returns the id of the one that retries it.
    pub(crate) async fn retry(&self, id: &str) -> String {
        loop {
            let execution = self.execution(id).await;
            if let Some(retry) = execution["retried_by"].as_str() {
                return retry.to_owned();
            }
            assert!(execution["completed_at"].is_null(), "{execution:#}");
            pause().await;
        }
    }

    pub(crate) async fn ended(&self, id: &str) -> Value {
        loop {
            let execution = self.execution(id).await;
            if !execution["completed_at"].is_null() {
                return execution;
            }
            pause().await;
        }
    }

    pub(crate) async fn logs(&self, id: &str) -> String {
        let path = format!("/job-executions/{id}/logs");
        self.ask(KEY, Method::GET, &path, Value::Null).await.1
    }

    pub(crate) async fn until_begun(&self, id: &str) {
        loop {
            // Read before the log: a run that ends between the two has begun.
            let execution = self.execution(id).await;
            if self.logs(id).await.contains("begun\n") {
                return;
            }
            assert!(execution["completed_at"].is_null(), "{execution:#}");
            pause().await;
        }
    }
}

/// Between two looks at something that is about to change.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// The keys of the attempts at an execution that have processes.
pub(crate) fn keys(execution: &str) -> BTreeSet<String> {
    let environments = processes(execution);
    let keys = environments.iter().filter_map(|environment| {
        let mut lines = environment.split('\0');
        lines.find_map(|line| line.strip_prefix("LABDATA_API_KEY="))
    });
    keys.map(str::to_owned).collect()
}

/// The environments of all processes of an execution.
pub(crate) fn processes(execution: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        if environment.contains(&format!("LABDATA_JOB_EXECUTION_ID={execution}\0")) {
            found.push(environment);
        }
    }
    found
}

pub(crate) async fn until_no_process_is_left(execution: &str) {
    while !processes(execution).is_empty() {
        pause().await;
    }
}

#[tokio::test]
async fn ten_scripts_one_after_the_other_all_complete() {
    let directory = directory();
    let lab = Lab::start(directory.path(), &[]);
    let job = lab.job("hello", "print('hello')\n").await;
    for _ in 0..10 {
        let id = lab.run(&job).await;
        let done = lab.ended(&id).await;
        assert_eq!(
            (&done["status"], &done["exit_code"]),
            (&json!("completed"), &json!(0)),
            "{done}"
        );
        assert_eq!(lab.logs(&id).await, "hello\n");
    }
}

#[tokio::test]
async fn a_run_outlives_one_killed_worker_and_nothing_of_it_is_left() {
    let directory = directory();
    let lab = Lab::start(directory.path(), &["--no-worker"]);
    let mut first = Worker::start(directory.path(), &lab.server);
    let id = lab.run(&lab.job("long", LONG).await).await;
    lab.until_begun(&id).await;
    let key = keys(&id).pop_first().expect("the script runs");
    let asked = async || lab.ask(&key, Method::GET, "/jobs", Value::Null).await.0;
    assert_eq!(asked().await, StatusCode::OK);

    first.kill();
    until_no_process_is_left(&id).await;
    // The server finds the lost run although no worker is left.
    while asked().await != StatusCode::UNAUTHORIZED {
        pause().await;
    }
    let retry = lab.retry(&id).await;
    assert_eq!(lab.execution(&id).await["status"], "failed");
    assert_eq!(lab.execution(&retry).await["status"], "queued");

    let mut second = Worker::start(directory.path(), &lab.server);
    while processes(&retry).is_empty() {
        pause().await;
    }
    second.kill();
    let failed = lab.ended(&retry).await;
    assert_eq!(
        (&failed["status"], &failed["retry_of"]),
        (&json!("failed"), &json!(id))
    );
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.contains("was lost"), "{message}");
    until_no_process_is_left(&retry).await;
}

#[tokio::test]
async fn a_worker_that_stood_still_past_its_lease_stops_its_script() {
    let directory = directory();
    let lab = Lab::start(directory.path(), &["--no-worker"]);
    let first = Worker::start(directory.path(), &lab.server);
    let id = lab.run(&lab.job("long", LONG).await).await;
    lab.until_begun(&id).await;
    let lost = keys(&id);
    first.signal("STOP");
    // The server takes the run from it, whose script continues.
    let retry = lab.retry(&id).await;
    assert_eq!(keys(&id), lost);
    let second = Worker::start(directory.path(), &lab.server);
    while keys(&retry).is_empty() {
        pause().await;
    }
    first.signal("CONT");
    until_no_process_is_left(&id).await;
    assert!(keys(&retry).is_disjoint(&lost), "each has a key");
    assert_eq!(lab.execution(&retry).await["status"], "running");
    drop(second);
}

#[tokio::test]
async fn two_workers_run_each_execution_once_and_stop_what_is_cancelled() {
    let directory = directory();
    let lab = Lab::start(directory.path(), &["--no-worker"]);
    let _workers = [
        Worker::start(directory.path(), &lab.server),
        Worker::start(directory.path(), &lab.server),
    ];
    let once = lab.job("once", "print('once')\n").await;
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(lab.run(&once).await);
    }
    for id in ids {
        assert_eq!(lab.ended(&id).await["status"], "completed");
        assert_eq!(lab.logs(&id).await, "once\n");
    }
    let id = lab.run(&lab.job("long", LONG).await).await;
    lab.until_begun(&id).await;
    let path = format!("/job-executions/{id}/cancel");
    let cancelled = lab.call(Method::POST, &path, Value::Null).await;
    assert_eq!(cancelled["status"], "cancelled");
    until_no_process_is_left(&id).await;
    assert_eq!(lab.execution(&id).await, cancelled);
}

#[tokio::test]
async fn workers_that_are_killed_while_they_dispatch_lose_no_file_and_double_none() {
    const FILES: usize = 300;
    let directory = directory();
    let lab = Lab::start(directory.path(), &["--no-worker"]);
    let reader = lab
        .call(Method::POST, "/instruments", json!({"name": "reader"}))
        .await;
    let job = json!({
        "name": "parse", "code": "print('parsed')\n", "trigger_enabled": true,
        "trigger_category": "file_uploaded", "trigger_instrument_id": reader["id"],
    });
    let job = lab.call(Method::POST, "/jobs", job).await;
    for number in 0..FILES {
        let (name, bytes) = (format!("plate {number}.csv"), b"well,value\n".to_vec());
        lab.upload(&reader["id"], &name, bytes).await;
    }
    let path = format!(
        "/job-executions?job_id={}&limit=1000",
        job["id"].as_str().unwrap()
    );
    let runs = async || {
        let runs = lab.call(Method::GET, &path, Value::Null).await;
        let mut runs = runs.as_array().unwrap().clone();
        // One that ran on a killed worker is retried by an execution that no file triggered.
        runs.retain(|run| run["retry_of"].is_null());
        runs
    };
    let mut dispatched = 0;
    while dispatched < FILES {
        // Each is killed as soon as it has dispatched anything, in the middle of the rest.
        let mut worker = Worker::start(directory.path(), &lab.server);
        let before = dispatched;
        while dispatched == before {
            pause().await;
            dispatched = runs().await.len();
        }
        worker.kill();
        dispatched = runs().await.len();
    }
    let runs = runs().await;
    let files: BTreeSet<&str> = runs
        .iter()
        .map(|run| run["trigger_file_id"].as_str().unwrap())
        .collect();
    assert_eq!((runs.len(), files.len()), (FILES, FILES));
}
