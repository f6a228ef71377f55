//! Measures requests at several connections, and prints the figures.

use std::{collections::BTreeSet, time::Instant};

use futures::future::join_all;
use serde_json::Value;

use crate::{
    connection::{Connection, Request, Response},
    support::{Server, percentile},
};

/// Connections that each send one request at a time.
pub(crate) const CONNECTIONS: usize = 16;

/// Endpoints that are not measured here, and why.
const LEFT_OUT: [(&str, &str); 28] = [
    ("GET /dependencies", "starts programs, once a minute"),
    ("POST /agent/runs", "`just bench -- agent`"),
    ("POST /agent/runs/{run_id}/cancel", "needs a run"),
    ("GET /agent/chats/{chat_id}", "needs a run"),
    ("DELETE /agent/chats/{chat_id}", "needs a run"),
    ("GET /agent/chats/{chat_id}/files/{file_id}", "needs a run"),
    ("GET /events", "a stream"),
    ("POST /sql-logins", "the server of the bench serves no SQL"),
    ("GET /sql-logins", "needs a login"),
    ("GET /sql-logins/{login_id}", "needs a login"),
    ("DELETE /sql-logins/{login_id}", "needs a login"),
    (
        "POST /files/{file_id}/read",
        "starts a process; see docs/reference/READERS.md",
    ),
    ("POST /mcp", "tools of the agent, by another protocol"),
    ("POST /ml-models", "trains for minutes"),
    ("POST /ml-models/predict", "needs a trained model"),
    ("GET /ml-models/{ml_model_id}", "needs a trained model"),
    (
        "POST /ml-models/{ml_model_id}/activate",
        "needs a trained model",
    ),
    (
        "POST /ml-models/{ml_model_id}/archive",
        "needs a trained model",
    ),
    (
        "GET /ml-models/{ml_model_id}/artifact",
        "needs a trained model",
    ),
    (
        "POST /ml-models/{ml_model_id}/cancel-training",
        "needs a training",
    ),
    (
        "POST /ml-models/{ml_model_id}/predict-table",
        "needs a trained model",
    ),
    ("GET /ml-models/{ml_model_id}/progress", "needs a training"),
    (
        "GET /ml-models/{ml_model_id}/report",
        "needs a trained model",
    ),
    (
        "GET /ml-models/{ml_model_id}/results",
        "needs a trained model",
    ),
    (
        "GET /ml-models/{ml_model_id}/versions",
        "needs a trained model",
    ),
    (
        "POST /tables/{name}/rows/{id}/restore",
        "one write; `just bench -- history`",
    ),
    (
        "DELETE /tables/{name}/rows/{id}/history",
        "needs the history of a deleted row",
    ),
    ("GET /openapi.json", "a constant"),
];

struct Row {
    endpoint: String,
    note: String,
    connections: usize,
    times: Vec<f64>,
    seconds: f64,
}

/// The server and what was measured.
pub(crate) struct Report {
    pub(crate) base: String,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(server: &Server) -> Self {
        Self {
            base: server.base.clone(),
            rows: Vec::new(),
        }
    }

    /// Measures requests of an endpoint at 16 connections; returns the answers in any order.
    pub(crate) async fn run(
        &mut self,
        endpoint: &str,
        note: &str,
        requests: Vec<Request>,
    ) -> Vec<Response> {
        self.run_at(CONNECTIONS, endpoint, note, requests).await
    }

    pub(crate) async fn run_at(
        &mut self,
        connections: usize,
        endpoint: &str,
        note: &str,
        requests: Vec<Request>,
    ) -> Vec<Response> {
        assert!(requests.len() >= connections, "{endpoint}");
        let start = Instant::now();
        let (times, responses) = timed(&self.base, connections, requests).await;
        self.rows.push(Row {
            endpoint: endpoint.to_owned(),
            note: note.to_owned(),
            connections,
            times,
            seconds: start.elapsed().as_secs_f64(),
        });
        responses
    }

    /// Prints a table of what was measured, and fails if an endpoint is neither in it nor left out.
    pub(crate) fn print(&self) {
        println!("| endpoint | request | connections | requests | p50 ms | p99 ms | requests/s |");
        println!("|---|---|--:|--:|--:|--:|--:|");
        for row in &self.rows {
            println!(
                "| `{}` | {} | {} | {} | {:.1} | {:.1} | {:.0} |",
                row.endpoint,
                row.note,
                row.connections,
                row.times.len(),
                percentile(row.times.clone(), 50),
                percentile(row.times.clone(), 99),
                row.times.len() as f64 / row.seconds,
            );
        }
        println!("\nNot measured:\n");
        for (endpoint, reason) in LEFT_OUT {
            println!("- `{endpoint}`: {reason}");
        }
        let known: BTreeSet<String> = self.rows.iter().map(|row| row.endpoint.clone()).collect();
        let left_out = LEFT_OUT.map(|(endpoint, _)| endpoint.to_owned());
        let missing: Vec<String> = documented()
            .into_iter()
            .filter(|endpoint| !known.contains(endpoint) && !left_out.contains(endpoint))
            .collect();
        assert!(
            missing.is_empty(),
            "neither measured nor left out: {missing:?}"
        );
    }
}

/// Endpoints of the OpenAPI document, as `METHOD path`.
fn documented() -> Vec<String> {
    let document: Value =
        serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let methods = paths.iter().flat_map(|(path, methods)| {
        let path = path.strip_prefix("/api/v1").unwrap_or(path);
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    methods.collect()
}

/// Milliseconds of each request and the answers, in the order of the requests. The connections are open before.
pub(crate) async fn timed(
    base: &str,
    connections: usize,
    requests: Vec<Request>,
) -> (Vec<f64>, Vec<Response>) {
    let mut shares: Vec<Vec<(usize, Request)>> = (0..connections).map(|_| Vec::new()).collect();
    for (index, request) in requests.into_iter().enumerate() {
        shares[index % connections].push((index, request));
    }
    let opened = join_all((0..connections).map(|_| Connection::open(base))).await;
    let tasks = opened
        .into_iter()
        .zip(shares)
        .map(|(mut connection, share)| {
            tokio::spawn(async move {
                let mut results = Vec::with_capacity(share.len());
                for (index, request) in share {
                    let start = Instant::now();
                    let response = connection.send(&request).await;
                    let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
                    results.push((index, (milliseconds, response)));
                }
                results
            })
        });
    let results = join_all(tasks).await;
    let mut results: Vec<_> = results
        .into_iter()
        .flat_map(|results| results.unwrap())
        .collect();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).unzip()
}
