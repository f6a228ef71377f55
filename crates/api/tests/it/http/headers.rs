//! Headers that every response carries, from the list of endpoints itself.

use labdata_api::{http::endpoint::Endpoint, routes};
use labdata_domain::people::scope::Scope;
use reqwest::Method;
use serde_json::json;

use crate::server::{Client, Reply, TestServer, send};

/// The paths and methods of the endpoint, with ids that nothing bears.
fn calls(endpoint: &Endpoint) -> Vec<(Method, String)> {
    let mut path = String::new();
    let mut rest = endpoint.path.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        path.push_str(before);
        path.push_str("0191d5a4-0000-7000-8000-000000000000");
        rest = after.split_once('}').unwrap().1;
    }
    path.push_str(rest);
    let methods = endpoint.methods();
    let methods = methods.iter().map(|method| method.as_str().as_bytes());
    methods
        .map(|method| (Method::from_bytes(method).unwrap(), path.clone()))
        .collect()
}

#[track_caller]
fn assert_guarded(reply: &Reply, call: &str) {
    assert_eq!(
        reply.header("x-content-type-options"),
        Some("nosniff"),
        "{call}"
    );
    assert_eq!(
        reply.header("referrer-policy"),
        Some("same-origin"),
        "{call}"
    );
    let policy = reply.header("content-security-policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'"), "{call}: {policy}");
    assert!(!policy.contains("unsafe"), "{call}: {policy}");
    let frames = policy.contains("frame-ancestors 'none'") || policy.contains("sandbox");
    assert!(frames, "{call}: {policy}");
    assert!(reply.header("x-request-id").is_some(), "{call}");
}

async fn every_call(client: &Client) -> Vec<(String, Reply)> {
    let mut replies = Vec::new();
    for endpoint in routes::all() {
        for (method, path) in calls(&endpoint) {
            let reply = send(client.request(method.clone(), &path)).await;
            replies.push((format!("{method} {path}"), reply));
        }
    }
    replies
}

#[tokio::test]
async fn no_response_can_be_sniffed_framed_or_leak_its_url() {
    let server = TestServer::start().await;
    for client in [server.anonymous(), server.client(&Scope::ALL).await] {
        for (call, reply) in every_call(&client).await {
            assert_guarded(&reply, &call);
        }
        for (method, path) in [
            (Method::GET, "/nowhere"),
            (Method::GET, "/docs/index.html"),
            (Method::GET, "/docs/swagger-ui.css"),
            (Method::DELETE, "/api/v1/jobs"),
            (Method::OPTIONS, "/api/v1/jobs"),
        ] {
            let reply = send(client.request(method.clone(), path)).await;
            assert_guarded(&reply, &format!("{method} {path}"));
        }
    }
}

#[tokio::test]
async fn no_cache_stores_what_a_key_may_see() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for (call, reply) in every_call(&client).await {
        let cached = reply.header("cache-control").unwrap_or_default();
        assert!(
            cached.contains("no-store") || cached.contains("no-cache"),
            "{call}: {cached}"
        );
    }
    let body = json!({ "name": "mine", "scopes": ["read"] });
    let created = client.post("/api/v1/api-keys", &body).await;
    created.json(200);
    assert_eq!(created.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn the_reference_page_keeps_no_key_in_the_browsers_storage() {
    let server = TestServer::start().await;
    let client = server.anonymous();
    let script = client.get("/docs/swagger-initializer.js").await;
    assert_eq!(script.status, 200);
    let settings = script.text.replace(' ', "");
    assert!(settings.contains("openapi.json"), "{settings}");
    assert!(
        !settings.contains("\"persistAuthorization\":true"),
        "{settings}"
    );
    let page = client.get("/docs/index.html").await;
    assert!(!page.text.contains("<script>"), "no inline script");
}

#[tokio::test]
async fn a_forwarded_header_that_no_setting_trusts_leads_no_client_elsewhere() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for name in ["a", "b"] {
        let body = json!({ "job_name": name });
        client.post("/api/v1/job-executions", &body).await.json(200);
    }
    for (name, value) in [
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "host=evil.example;proto=https"),
        ("host", "evil.example"),
    ] {
        let request = client.request(Method::GET, "/api/v1/job-executions?limit=1");
        let reply = send(request.header(name, value)).await;
        let own = format!("http://{}/api/v1/job-executions?", server.address);
        let next = reply.next().expect("a next page");
        assert!(next.starts_with(&own), "{name}: {next}");
    }
}
