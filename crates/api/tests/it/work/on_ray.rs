//! Runs of the built program on a real Ray cluster.

use labdata_test_ray::Cluster;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    process::directory,
    work::platform_runs::{LONG, Lab, pause, processes, until_no_process_is_left},
};

/// Calls the platform with the key of its run.
const CALLS: &str = "
import json, os, urllib.request
request = urllib.request.Request(
    os.environ['LABDATA_BASE_URL'] + '/api/v1/job-executions/' + os.environ['LABDATA_JOB_EXECUTION_ID'],
    headers={'Authorization': 'Bearer ' + os.environ['LABDATA_API_KEY']},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)['status'])
";

#[tokio::test]
async fn the_setting_sends_runs_to_ray_where_they_end_are_cancelled_and_survive_a_lost_cluster() {
    // One place, so that a second run waits in the cluster.
    let cluster = Cluster::running(1, None).await;
    let directory = directory();
    let backend = format!("ray+{}", cluster.address());
    let lab = Lab::start_with(directory.path(), &[], &[("LABDATA_JOB_BACKEND", &backend)]);

    let calls = lab.run(&lab.job("calls", CALLS).await).await;
    let done = lab.ended(&calls).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(lab.logs(&calls).await, "running\n");

    let job = lab.job("fails", "raise ValueError('no wells')\n").await;
    let failed = lab.ended(&lab.run(&job).await).await;
    assert_eq!(
        (&failed["status"], &failed["exit_code"]),
        (&json!("failed"), &json!(1))
    );
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.ends_with("ValueError: no wells"), "{message}");

    let long = lab.job("long", LONG).await;
    let cancel = async |id: &str| {
        let path = format!("/job-executions/{id}/cancel");
        let cancelled = lab.call(Method::POST, &path, Value::Null).await;
        assert_eq!(cancelled["status"], "cancelled");
    };
    let running = lab.run(&long).await;
    lab.until_begun(&running).await;
    let pending = lab.run(&long).await;
    while lab.execution(&pending).await["status"] != "running" {
        pause().await;
    }
    cancel(&pending).await;
    cancel(&running).await;
    until_no_process_is_left(&running).await;
    assert_eq!(lab.logs(&pending).await, "", "it never began");

    let survivor = lab.run(&long).await;
    lab.until_begun(&survivor).await;
    cluster.end();
    let again = Cluster::running_again(1, &cluster).await;
    let survivor = lab.retry(&survivor).await;
    while !lab.logs(&survivor).await.contains("begun\n") {
        assert!(lab.execution(&survivor).await["completed_at"].is_null());
        pause().await;
    }
    assert!(lab.logs(&survivor).await.contains("[labdata: attempt 2"));
    assert!(!processes(&survivor).is_empty());
    cancel(&survivor).await;
    until_no_process_is_left(&survivor).await;
    drop(again);
}
