//! Trainings of the built program on a real Ray cluster.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use labdata_test_ray::Cluster;
use reqwest::Method;
use serde_json::{Value, json};

use super::platform_trainings::{self, dataset, ended, train, until_fitting};
use crate::{
    process::directory,
    work::platform_runs::{Lab, pause},
};

/// Time in which a cancelled training must have ended.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// Processes of runs on the cluster.
fn processes(cluster: &Cluster) -> BTreeMap<String, String> {
    platform_trainings::processes(&cluster.workspaces().display().to_string())
}

fn workspaces(cluster: &Cluster) -> Vec<String> {
    let entries = fs::read_dir(cluster.workspaces()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("labdata-run-"))
        .collect()
}

#[tokio::test]
async fn the_setting_sends_trainings_to_ray_where_they_end_and_are_cancelled() {
    let cluster = Cluster::running(2, None).await;
    let directory = directory();
    let backend = format!("ray+{}", cluster.address());
    let settings = [
        ("LABDATA_ML_BACKEND", backend.as_str()),
        ("LABDATA_TRAINING_TIME_LIMIT", "40"),
    ];
    let lab = Lab::start_with(directory.path(), &[], &settings);
    let rows = dataset(&lab).await;

    let queued = train(&lab, &rows, "medium_quality", json!({"name": "levels"})).await;
    let ready = ended(&lab, &queued).await;
    assert_eq!(ready["status"], "ready", "{ready}");
    assert_eq!(ready["currently_active"], true);
    assert!(ready["progress"]["models_tried"].as_u64().unwrap() > 1);
    let path = format!("/ml-models/{}/artifact", ready["id"].as_str().unwrap());
    let artifact = lab.call(Method::GET, &path, Value::Null).await;
    let url = artifact["download_url"].as_str().unwrap();
    let bytes = reqwest::get(url).await.unwrap().bytes().await.unwrap();
    assert_eq!(artifact["size_bytes"], bytes.len());

    // Uses its whole time limit.
    let next = json!({"ml_model_id": ready["id"]});
    let queued = train(&lab, &rows, "best_quality", next).await;
    until_fitting(&lab, &queued, &Value::Null).await;
    assert!(!processes(&cluster).is_empty());
    let began = Instant::now();
    let path = format!(
        "/ml-models/{}/cancel-training",
        ready["id"].as_str().unwrap()
    );
    let cancelled = lab.call(Method::POST, &path, Value::Null).await;
    assert_eq!(cancelled["status"], "cancelled");
    while !processes(&cluster).is_empty() {
        assert!(
            began.elapsed() < CANCELLED_WITHIN,
            "{:?}",
            processes(&cluster)
        );
        pause().await;
    }
    // A busy machine takes a while to remove thousands of files.
    while !workspaces(&cluster).is_empty() {
        pause().await;
    }
    assert_eq!(ended(&lab, &queued).await["status"], "cancelled");
}
