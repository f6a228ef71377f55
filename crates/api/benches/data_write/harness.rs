//! Tables, clients, and paired timings.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio_postgres::Client;

pub(crate) use crate::support::median;
use crate::support::{KEY, Server};

pub(crate) struct Bench {
    pub(crate) http: reqwest::Client,
    pub(crate) database: Client,
    pub(crate) server: Server,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let server = Server::start(&[]).await;
        let bench = Self {
            http: reqwest::Client::new(),
            database: server.database().await,
            server,
        };
        bench.define_tables().await;
        bench
    }

    async fn define_tables(&self) {
        let column = |name: &str, data_type: &str| json!({ "name": name, "data_type": data_type });
        self.put(
            "sample",
            json!({ "semantic_category": "curated", "columns": [
            { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
            column("volume", "float"), column("taken_at", "datetime") ] }),
        )
        .await;
        self.put("measurement", json!({ "semantic_category": "curated", "columns": [
            { "name": "sample", "data_type": "string", "references": "sample", "is_nullable": false },
            column("kind", "string"), column("value", "float"), column("replicate", "integer") ] })).await;
        self.put("curve", json!({ "semantic_category": "raw", "columns": [
            { "name": "sample", "data_type": "string", "references": "sample", "is_nullable": false },
            column("order", "integer"), column("t", "float"), column("od", "float") ] })).await;
    }

    pub(crate) async fn put(&self, table: &str, definition: Value) {
        let url = self.server.url(&format!("/tables/{table}"));
        let response = self
            .http
            .put(url)
            .bearer_auth(KEY)
            .json(&definition)
            .send()
            .await
            .unwrap();
        assert!(
            response.status().is_success(),
            "{}",
            response.text().await.unwrap()
        );
    }

    /// The quoted schema of the one organization.
    pub(crate) async fn schema(&self) -> String {
        let row = self
            .database
            .query_one("SELECT schema_name FROM labdata.organization", &[])
            .await
            .unwrap();
        row.get(0)
    }

    pub(crate) async fn write(&self, body: String) -> Value {
        let url = self.server.url("/data/write");
        let request = self
            .http
            .post(url)
            .bearer_auth(KEY)
            .header("content-type", "application/json")
            .body(body);
        let response = request.send().await.unwrap();
        let ok = response.status().is_success();
        let value: Value = response.json().await.unwrap();
        assert!(ok, "{value}");
        value
    }

    /// Posts JSON to a path of the API.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let url = self.server.url(path);
        let response = self
            .http
            .post(url)
            .bearer_auth(KEY)
            .json(&body)
            .send()
            .await
            .unwrap();
        let ok = response.status().is_success();
        let value: Value = response.json().await.unwrap();
        assert!(ok, "{value}");
        value
    }

    /// Posts JSON to a path of the API; yields the answer's body as it is.
    pub(crate) async fn post_for_bytes(&self, path: &str, body: &Value) -> Vec<u8> {
        let url = self.server.url(path);
        let request = self.http.post(url).bearer_auth(KEY).json(body);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
        response.bytes().await.unwrap().into()
    }

    /// Gets a path of the API in a form.
    pub(crate) async fn get(&self, path: &str, form: &str) -> reqwest::Response {
        let url = self.server.url(path);
        let request = self.http.get(url).bearer_auth(KEY).header("accept", form);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
        response
    }

    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }
}

/// Milliseconds that something takes.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> f64 {
    let start = Instant::now();
    work.await;
    as_ms(start.elapsed())
}

fn as_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// As [`report`], for rates.
pub(crate) fn report_at_least(what: &str, limit: f64, pairs: &[(f64, f64)]) {
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let floor = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    println!("{what:<58} {ours:>9.1} {floor:>9.1} {ratio:>7.3}  (asked: at least {limit})");
}

/// Prints one line; the ratio is the median of the pairs' own ratios, which drift cancels out of.
pub(crate) fn report(what: &str, limit: f64, pairs: &[(f64, f64)]) {
    let ours = median(pairs.iter().map(|pair| pair.0).collect());
    let floor = median(pairs.iter().map(|pair| pair.1).collect());
    let ratio = median(pairs.iter().map(|pair| pair.0 / pair.1).collect());
    println!("{what:<58} {ours:>9.1} {floor:>9.1} {ratio:>7.3}  (asked: at most {limit})");
}
