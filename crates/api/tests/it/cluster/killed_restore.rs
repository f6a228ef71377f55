//! A server that is killed while it restores.

use std::time::{Duration, Instant};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use reqwest::{Client, Response};
use serde_json::{Value, json};

use super::lab::Cluster;
use crate::work::platform_runs::KEY;

const ROWS: usize = 10_000;
const SERIES: usize = 100;
const POINTS: usize = 5_000;

/// Parts of a restore's time after which the server is killed.
const MOMENTS: [f64; 6] = [0.15, 0.4, 0.65, 0.85, 0.95, 1.0];

/// A server's API.
struct Api {
    http: Client,
    url: String,
}

impl Api {
    async fn post(&self, path: &str, body: &Value) -> reqwest::Result<Response> {
        let request = self.http.post(format!("{}/api/v1{path}", self.url));
        request.bearer_auth(KEY).json(body).send().await
    }

    async fn done(&self, path: &str, body: &Value) -> Value {
        let response = self.post(path, body).await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn define(&self, name: &str, definition: Value) {
        let request = self.http.put(format!("{}/api/v1/tables/{name}", self.url));
        let response = request.bearer_auth(KEY).json(&definition).send().await;
        assert!(response.unwrap().status().is_success());
    }

    /// Writes all rows and points under one execution, with values that `run` decides; returns its id.
    async fn write(&self, run: usize, mode: &str) -> String {
        let started = self
            .done("/job-executions", &json!({"job_name": "fill"}))
            .await;
        let execution = started["job_execution_id"].as_str().unwrap().to_owned();
        let rows: Vec<Value> = (0..ROWS)
            .map(|row| json!({"id": format!("s{row}"), "volume": row + run}))
            .collect();
        let tables = json!([{"table": "sample", "mode": mode, "rows": rows}]);
        let body = json!({"tables": tables, "job_execution_id": execution});
        self.done("/data/write", &body).await;
        let numbers: Vec<usize> = (0..SERIES).collect();
        // A request holds at most 250,000 values.
        for part in numbers.chunks(SERIES / 4) {
            let series: Vec<Value> = part
                .iter()
                .map(|parent| {
                    let od: Vec<usize> = (0..POINTS).map(|point| point % 7 + run).collect();
                    json!({"table": "curve", "parent": format!("s{parent}"), "columns": {"od": od}})
                })
                .collect();
            let body = json!({"series": series, "job_execution_id": execution});
            self.done("/data/write", &body).await;
        }
        execution
    }

    /// Numbers and sums of rows and of points.
    async fn state(&self) -> Value {
        let query = "SELECT (SELECT concat(count(*), ' ', sum(volume)) FROM sample), \
                     (SELECT concat(count(*), ' ', sum(od)) FROM curve)";
        self.done("/tools/query", &json!({"query": query})).await["data"][0].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_whose_server_is_killed_is_done_completely_or_not_at_all() {
    let database = ThrowawayServer::start().await.unwrap();
    let mut cluster = Cluster::start(1, 0, &database.url("labdata"), &[]).await;
    let api = Api {
        http: Client::new(),
        url: cluster.members[0].url().unwrap(),
    };
    let sample = json!({"semantic_category": "curated", "columns": [{"name": "volume", "data_type": "float"}]});
    api.define("sample", sample).await;
    let curve = json!({"semantic_category": "raw", "columns": [
        {"name": "sample", "data_type": "string", "references": "sample"},
        {"name": "od", "data_type": "float"}]});
    api.define("curve", curve).await;
    api.write(0, "insert").await;
    let before = api.state().await;
    let execution = api.write(1, "update").await;
    let after = api.state().await;
    assert_ne!(before, after);

    let path = format!("/job-executions/{execution}/revert");
    // A dry run does all of the work.
    let began = Instant::now();
    let dry_run = json!({"restore": true, "dry_run": true});
    let promised = api.done(&path, &dry_run).await;
    let duration = began.elapsed();
    assert_eq!(promised["restored_count"], ROWS);
    assert_eq!(promised["raws_restored_count"], SERIES * POINTS);
    let mut undone = false;
    for moment in MOMENTS {
        let restore = json!({"restore": true});
        let reverting = api.post(&path, &restore);
        // Ends early if the response arrives first, which is one of the moments, too.
        let _ = tokio::time::timeout(duration.mul_f64(moment), reverting).await;
        cluster.members[0].kill();
        cluster.members[0].restart();
        cluster.members[0].until_ready().await;
        settled(&api, &path).await;
        let state = api.state().await;
        undone = state == before;
        assert!(undone || state == after, "{moment}: {state}");
        if undone {
            break;
        }
    }
    if !undone {
        api.done(&path, &json!({"restore": true})).await;
    }
    assert_eq!(api.state().await, before);
}

/// Waits until PostgreSQL has ended what the killed server began: it holds the execution as long.
async fn settled(api: &Api, path: &str) {
    let dry_run = json!({"restore": true, "dry_run": true});
    for _ in 0..100 {
        let response = api.post(path, &dry_run).await.unwrap();
        if response.status().is_success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("the execution stays locked");
}
