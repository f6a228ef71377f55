//! Endpoints without a key, and the program as operators use it.

mod audit;
mod backup;
mod console;
mod dashboard;
mod database_socket;
mod demo;
mod dependencies;
mod doctor;
mod full_disk;
mod logs;
mod openapi;
#[cfg(feature = "otlp")]
mod otlp;
mod program;
mod settings;
mod shutdown;
mod sign_in;

use std::sync::{Arc, atomic::Ordering};

use labdata_worker::{Background, TaskObserver};
use serde_json::{Value, json};
use time::Duration;

use crate::server::TestServer;

#[tokio::test]
async fn the_process_is_alive_even_when_the_database_is_not() {
    let server = TestServer::start().await;
    server.ready.broken.store(true, Ordering::Relaxed);
    let client = server.anonymous();
    assert_eq!(client.get("/healthz").await.json(200)["status"], "ok");
    assert_eq!(
        client.get("/readyz").await.detail(503),
        "the database does not respond"
    );
    server.ready.broken.store(false, Ordering::Relaxed);
    assert_eq!(client.get("/readyz").await.json(200)["status"], "ready");
}

#[tokio::test]
async fn metrics_count_requests_by_their_route_pattern() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    client.get("/api/v1/job-executions/one").await.detail(404);
    client
        .get("/api/v1/job-executions/another")
        .await
        .detail(404);
    client.get("/nowhere").await.detail(404);
    let text = server.anonymous().get("/metrics").await.text;
    let count = "labdata_http_request_duration_seconds_count";
    let pattern = "/api/v1/job-executions/{execution_id}";
    for line in [
        format!("{count}{{method=\"GET\",route=\"{pattern}\",status=\"404\"}} 2"),
        format!("{count}{{method=\"GET\",route=\"unmatched\",status=\"404\"}} 1"),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    if cfg!(target_os = "linux") {
        assert!(!text.contains("process_resident_memory_bytes 0"));
    }
}

/// Returns true if the metrics have this line.
fn has(metrics: &str, line: &str) -> bool {
    metrics.lines().any(|found| found == line)
}

#[tokio::test]
async fn metrics_show_the_run_queue_and_the_outboxes() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let job = json!({"name": "parse", "code": "print(1)"});
    let job = client.post("/api/v1/jobs", &job).await.json(200);
    let path = format!("/api/v1/jobs/{}/run", job["id"].as_str().unwrap());
    client.post(&path, &Value::Null).await.json(200);
    server.clock.advance(Duration::seconds(90));
    let metrics = server.anonymous().get("/metrics").await.text;
    for line in [
        "labdata_runs{state=\"queued\"} 1",
        "labdata_runs{state=\"running\"} 0",
        "labdata_run_queue_age_seconds 90",
        "labdata_outbox_age_seconds{outbox=\"events\"} 0",
        "labdata_outbox_age_seconds{outbox=\"emails\"} 0",
        "labdata_database_connections{state=\"active\"} 0",
    ] {
        assert!(has(&metrics, line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn the_platform_is_measured_once_a_second_however_often_metrics_are_asked_for() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let queued = async |runs: u32| {
        let metrics = server.anonymous().get("/metrics").await.text;
        has(
            &metrics,
            &format!("labdata_runs{{state=\"queued\"}} {runs}"),
        )
    };
    assert!(queued(0).await);
    let job = json!({"name": "parse", "code": "print(1)"});
    let job = client.post("/api/v1/jobs", &job).await.json(200);
    let path = format!("/api/v1/jobs/{}/run", job["id"].as_str().unwrap());
    client.post(&path, &Value::Null).await.json(200);
    server.clock.advance(Duration::milliseconds(999));
    assert!(queued(0).await);
    server.clock.advance(Duration::milliseconds(1));
    assert!(queued(1).await);
    // A clock that is set back measures again.
    server.clock.advance(Duration::seconds(-60));
    client.post(&path, &Value::Null).await.json(200);
    assert!(queued(2).await);
}

#[tokio::test]
async fn metrics_of_the_process_are_there_even_when_the_database_is_not() {
    let server = TestServer::start().await;
    let client = server.anonymous();
    let metrics = client.get("/metrics").await.text;
    assert!(metrics.contains("labdata_runs{"), "{metrics}");
    server.ready.broken.store(true, Ordering::Relaxed);
    server.clock.advance(Duration::seconds(1));
    let reply = client.get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(!reply.text.contains("labdata_runs{"), "{}", reply.text);
    assert!(reply.text.contains("process_open_fds"), "{}", reply.text);
}

#[tokio::test]
async fn metrics_show_the_last_success_of_periodic_tasks() {
    let server = TestServer::start().await;
    let observer: Arc<dyn TaskObserver> = Arc::new(server.metrics.clone());
    let background = Background::start(&server.services, None, &observer);
    let client = server.anonymous();
    for task in ["expire_work", "forget_stored_responses"] {
        let success = "labdata_periodic_task_last_success_timestamp_seconds";
        let success = format!("{success}{{task=\"{task}\"}} ");
        let failures = format!("labdata_periodic_task_failures_total{{task=\"{task}\"}} 0");
        loop {
            let metrics = client.get("/metrics").await.text;
            if metrics.contains(&success) {
                assert!(has(&metrics, &failures), "{failures} is not in\n{metrics}");
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    background.stop(std::time::Duration::from_secs(10)).await;
}

#[tokio::test]
async fn the_reference_is_complete_and_asks_nothing_of_the_internet() {
    let server = TestServer::start().await;
    let client = server.anonymous();
    let redirect = client.get("/docs").await;
    assert_eq!(
        (redirect.status.as_u16(), redirect.header("location")),
        (308, Some("docs/"))
    );
    let page = client.get("/docs/").await;
    assert_eq!(page.status, 200);
    let links = page
        .text
        .split(['"', '\''])
        .filter(|part| part.starts_with("./"));
    let mut found = 0;
    for link in links {
        let file = client
            .get(&format!("/docs/{}", link.trim_start_matches("./")))
            .await;
        assert_eq!(file.status, 200, "{link}");
        found += 1;
    }
    assert!(found >= 5, "{}", page.text);
    assert!(!page.text.contains("http"), "{}", page.text);
    let start = client.get("/docs/swagger-initializer.js").await.text;
    assert!(start.contains("\"../api/v1/openapi.json\""), "{start}");
    assert!(start.contains("\"validatorUrl\": \"none\""), "{start}");
    client.get("/docs/nothing.js").await.detail(404);
    assert_eq!(
        client.get("/api/v1/openapi.json").await.json(200)["info"]["version"],
        "1.0.0"
    );
}
