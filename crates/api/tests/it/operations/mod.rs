//! Endpoints without a key, and the program as operators use it.

mod demo;
mod openapi;
mod program;
mod settings;

use std::sync::atomic::Ordering;

use crate::server::TestServer;

#[tokio::test]
async fn the_process_is_alive_even_when_the_database_is_not() {
    let server = TestServer::start().await;
    server.ready.broken.store(true, Ordering::Relaxed);
    let client = server.anonymous();
    assert_eq!(client.get("/healthz").await.json(200)["status"], "ok");
    assert_eq!(
        client.get("/readyz").await.detail(503),
        "the database does not answer"
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
