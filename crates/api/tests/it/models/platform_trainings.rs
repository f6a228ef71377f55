//! Trainings by the built program, over HTTP, and their processes.

use std::{collections::BTreeMap, fs};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::work::platform_runs::{KEY, Lab, pause};

/// Rows that a model can learn from.
const ROWS: &str = "SELECT i::float8 AS a, (i * 7 % 13)::float8 AS b, \
                    CASE WHEN i % 13 > 6 THEN 'high' ELSE 'low' END AS label \
                    FROM generate_series(1, 400) AS i";

pub(super) async fn dataset(lab: &Lab) -> Value {
    let body = json!({"name": "rows", "query": ROWS});
    lab.call(Method::POST, "/datasets", body).await["id"].clone()
}

/// Queues a training as soon as a worker has said that it can train. `model` names the model, and may
/// set more.
pub(super) async fn train(lab: &Lab, dataset: &Value, preset: &str, model: Value) -> Value {
    let mut body = json!({
        "dataset_id": dataset, "target_column": "label", "quality_preset": preset,
    });
    body.as_object_mut()
        .unwrap()
        .extend(model.as_object().unwrap().clone());
    loop {
        let (status, text) = lab.ask(KEY, Method::POST, "/ml-models", body.clone()).await;
        if status == StatusCode::OK {
            return serde_json::from_str(&text).unwrap();
        }
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
        pause().await;
    }
}

pub(super) async fn version(lab: &Lab, of: &Value) -> Value {
    let (id, number) = (of["id"].as_str().unwrap(), &of["version_number"]);
    let path = format!("/ml-models/{id}?version_number={number}");
    lab.call(Method::GET, &path, Value::Null).await
}

pub(super) async fn until(lab: &Lab, of: &Value, is_wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let version = version(lab, of).await;
        if is_wanted(&version) {
            return version;
        }
        let is_over = !version["training_completed_at"].is_null();
        assert!(!is_over, "{version}");
        pause().await;
    }
}

/// Waits until an attempt fits models that did not start at `before`. Returns when it started.
pub(super) async fn until_fitting(lab: &Lab, of: &Value, before: &Value) -> Value {
    let is_fitting = |version: &Value| {
        version["progress"]["phase"] == "fitting" && version["training_started_at"] != *before
    };
    until(lab, of, is_fitting).await["training_started_at"].clone()
}

pub(super) async fn ended(lab: &Lab, of: &Value) -> Value {
    until(lab, of, |version| {
        !version["training_completed_at"].is_null()
    })
    .await
}

/// Predicts rows once the model is prepared.
#[cfg(feature = "test-multimodal")]
pub(super) async fn predict(lab: &Lab, of: &Value, rows: &[Value]) -> Value {
    let body = json!({"ml_model_id": of["id"], "data": rows});
    loop {
        let (status, text) = lab
            .ask(KEY, Method::POST, "/ml-models/predict", body.clone())
            .await;
        if status == StatusCode::OK {
            return serde_json::from_str(&text).unwrap();
        }
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
        pause().await;
    }
}

/// Processes whose command line contains that path: command lines by process id.
pub(super) fn processes(path: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let id = entry.file_name().to_string_lossy().into_owned();
        line.contains(path).then_some((id, line))
    });
    found.collect()
}
