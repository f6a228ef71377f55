//! Attacks of someone who sees the dashboard of the Ray cluster that runs scripts.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use labdata_test_ray::Cluster;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    process::{directory, labdata, run, text},
    work::platform_runs::{LONG, Lab, pause},
};

/// Prints its key in reverse, so that the key itself stands in no log, and runs on.
const SHOWS_ITS_KEY: &str = "
import os, time
print('key ' + os.environ['LABDATA_API_KEY'][::-1] + ' end', flush=True)
time.sleep(600)
";

/// Prints the order of a run, which its job has in the environment.
const UNPACK: &str = "
import base64, sys, zlib
sys.stdout.buffer.write(zlib.decompress(base64.b64decode(sys.argv[1])))
";

/// The job API and the dashboard, as everyone can read them.
struct Dashboard {
    address: String,
    http: Client,
}

impl Dashboard {
    async fn get(&self, path: &str) -> String {
        let url = format!("{}{path}", self.address);
        let response = self.http.get(url).send().await.unwrap();
        response.text().await.unwrap()
    }

    /// The job of an execution, once there is one.
    async fn job_of(&self, execution: &str) -> Value {
        loop {
            let jobs: Value = serde_json::from_str(&self.get("/api/jobs/").await).unwrap();
            let mut jobs = jobs.as_array().unwrap().iter();
            if let Some(job) = jobs.find(|job| job["metadata"]["labdata_execution"] == execution) {
                return job.clone();
            }
            pause().await;
        }
    }
}

/// The order in the environment of a job, unpacked.
fn order(job: &Value) -> String {
    let packed = &job["runtime_env"]["env_vars"]["LABDATA_RUN_ORDER"];
    let unpacked = Command::new("python3")
        .args(["-c", UNPACK, packed.as_str().unwrap()])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(unpacked.status.success());
    text(&unpacked.stdout)
}

fn nonce_in(order: &str) -> String {
    let order: Value = serde_json::from_str(order).unwrap();
    let nonce = order["key_exchange"]["nonce"].as_str();
    nonce.unwrap().to_owned()
}

/// The files below a directory that contain a text.
fn files_with(directory: &Path, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, wanted));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            let mut windows = bytes.windows(wanted.len());
            if windows.any(|window| window == wanted.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

async fn status_with(lab: &Lab, key: &str) -> StatusCode {
    lab.ask(key, Method::GET, "/jobs", Value::Null).await.0
}

async fn redeem(lab: &Lab, nonce: &str) -> (StatusCode, Value) {
    let request = Client::new().post(format!("{}/run-key", lab.url()));
    let response = request.bearer_auth(nonce).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

async fn cancel(lab: &Lab, run: &str) {
    let path = format!("/job-executions/{run}/cancel");
    lab.call(Method::POST, &path, Value::Null).await;
}

#[tokio::test]
async fn who_sees_the_dashboard_gets_no_key_and_is_noticed_as_a_thief_of_nonces() {
    // One place, so that a second run waits in the cluster.
    let cluster = Cluster::running(1, None).await;
    let directory = directory();
    let backend = format!("ray+{}", cluster.address());
    let lab = Lab::start_with(directory.path(), &[], &[("LABDATA_JOB_BACKEND", &backend)]);
    let dashboard = Dashboard {
        address: cluster.address().to_owned(),
        http: Client::new(),
    };

    // The key of a run stands nowhere.
    let shows = lab.run(&lab.job("shows", SHOWS_ITS_KEY).await).await;
    let key: String = loop {
        let logs = lab.logs(&shows).await;
        if let Some((key, _)) = logs
            .split_once("key ")
            .and_then(|(_, rest)| rest.split_once(" end"))
        {
            break key.chars().rev().collect();
        }
        assert!(lab.execution(&shows).await["completed_at"].is_null());
        pause().await;
    };
    assert!(key.starts_with("ldk_"), "{key}");
    assert_eq!(status_with(&lab, &key).await, StatusCode::OK);
    let job = dashboard.job_of(&shows).await;
    let order_of_shows = order(&job);
    let id = job["submission_id"].as_str().unwrap();
    let logs = dashboard.get(&format!("/api/jobs/{id}/logs")).await;
    assert!(logs.contains(" end"), "{logs}");
    for displayed in [
        job.to_string(),
        order_of_shows.clone(),
        logs,
        dashboard.get(&format!("/api/jobs/{id}")).await,
        dashboard.get("/api/jobs/").await,
    ] {
        assert!(!displayed.contains(&key), "{displayed}");
    }
    assert_eq!(files_with(cluster.directory(), &key), [""; 0]);

    // A nonce that was used is refused, and costs the thief's prey its key.
    let (status, response) = redeem(&lab, &nonce_in(&order_of_shows)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{response}");
    assert_eq!(status_with(&lab, &key).await, StatusCode::UNAUTHORIZED);
    assert!(lab.logs(&shows).await.contains("requested twice"));
    cancel(&lab, &shows).await;

    // A thief who is faster than the run does not keep the key for long.
    let long = lab.run(&lab.job("long", LONG).await).await;
    lab.until_begun(&long).await;
    let waits = lab.run(&lab.job("waits", "print('ran')\n").await).await;
    let stolen = nonce_in(&order(&dashboard.job_of(&waits).await));
    let (status, response) = redeem(&lab, &stolen).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    let stolen = response["key"].as_str().unwrap().to_owned();
    assert_eq!(status_with(&lab, &stolen).await, StatusCode::OK);
    cancel(&lab, &long).await;
    let failed = lab.ended(&waits).await;
    assert_eq!(failed["status"], json!("failed"), "{failed}");
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.contains("used before"), "{message}");
    assert_eq!(status_with(&lab, &stolen).await, StatusCode::UNAUTHORIZED);

    // Another organization sees nothing of the first one in the cluster: neither of both runs there.
    let arguments = ["api-key", "create", "--scopes", "read", "--user", "eve@lab"];
    let mut create = labdata(directory.path(), &arguments);
    assert!(run(create.args(["--organization", "two"])).status.success());
    let refused = lab.run(&lab.job("secret", "print('secret')\n").await).await;
    let message = lab.ended(&refused).await["error_message"].to_string();
    assert!(message.contains("LABDATA_JOB_RAY_SHARED=true"), "{message}");
    let jobs = dashboard.get("/api/jobs/").await;
    assert!(!jobs.contains(&refused), "{jobs}");
}
