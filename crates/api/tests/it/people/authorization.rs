//! Every endpoint against every kind of key, from the list of endpoints itself.

use labdata_api::{
    http::{Access, endpoint::Endpoint},
    routes::{self, openapi},
};
use labdata_domain::people::scope::Scope;
use reqwest::Method;

use crate::server::{Client, Reply, TestServer, send};

/// The endpoints that ask for no key. Adding one is a decision.
const OPEN: &[&str] = &[
    "/",
    "/api/v1/session",
    "/api/v1/openapi.json",
    "/healthz",
    "/metrics",
    "/readyz",
];

/// Parts of the path that no document shows and that ask for no key, for a reason of their own:
/// the console and the paths of notices that lead to its pages, the interactive reference, URLs that carry a
/// signature, and the exchange of a run's nonce.
const HIDDEN: &[&str] = &[
    "/console/",
    "/docs",
    "/job-executions/",
    "/jobs/",
    "/ml-models/",
    "/run-key",
    "/storage",
    "/training-",
    "/unsubscribe",
];

/// The console's page is hidden, too, but not all that is below it.
fn is_hidden(path: &str) -> bool {
    path == "/" || HIDDEN.iter().any(|start| path.starts_with(start))
}

/// The endpoints for which any valid key will do. Adding one is a decision.
const ANY_KEY: &[&str] = &["/api/v1/me", "/api/v1/session", "/api/v1/session"];

/// The endpoints that need a scope.
fn guarded() -> Vec<(Endpoint, Scope)> {
    let scoped = |it: Endpoint| match it.access {
        Access::Scope(scope) => Some((it, scope)),
        Access::AnyKey | Access::Open => None,
    };
    routes::all().into_iter().filter_map(scoped).collect()
}

/// Calls the endpoint with ids that nothing bears and no body.
async fn call(client: &Client, endpoint: &Endpoint) -> Reply {
    let method = Method::from_bytes(endpoint.method.as_str().as_bytes()).unwrap();
    let mut path = String::new();
    let mut rest = endpoint.path.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        path.push_str(before);
        path.push_str("0191d5a4-0000-7000-8000-000000000000");
        rest = after.split_once('}').unwrap().1;
    }
    path.push_str(rest);
    send(client.request(method, &path)).await
}

#[tokio::test]
async fn every_guarded_endpoint_asks_for_a_key() {
    let server = TestServer::start().await;
    let revoked = server
        .key(&Scope::ALL, |key| key.revoked_at = Some(key.created_at))
        .await;
    let expired = server
        .key(&Scope::ALL, |key| key.expires_at = Some(key.created_at))
        .await;
    let clients = [
        server.anonymous(),
        server.anonymous().authorized("Basic YTpi"),
        server.with_key("nonsense"),
        server.with_key(&format!("ldk_zzzzzzzz_{}", "0".repeat(43))),
        server.with_key(&revoked),
        server.with_key(&expired),
    ];
    let closed = |endpoint: &Endpoint| endpoint.access != Access::Open;
    for endpoint in routes::all().into_iter().filter(closed) {
        for client in &clients {
            let reply = call(client, &endpoint).await;
            assert_eq!(reply.status, 401, "{endpoint:?}");
            assert_eq!(
                reply.header("www-authenticate"),
                Some("Bearer"),
                "{endpoint:?}"
            );
        }
    }
}

#[tokio::test]
async fn every_guarded_endpoint_asks_for_its_scope_and_no_other() {
    let server = TestServer::start().await;
    for (endpoint, scope) in guarded() {
        let others: Vec<Scope> = Scope::ALL
            .into_iter()
            .filter(|other| *other != scope)
            .collect();
        for lacking in [&others[..], &others[..1], &others[1..], &[]] {
            let reply = call(&server.client(lacking).await, &endpoint).await;
            let expected = format!("this API key lacks the {scope} scope");
            assert_eq!(reply.detail(403), expected, "{endpoint:?}");
        }
        let status = call(&server.client(&[scope]).await, &endpoint)
            .await
            .status
            .as_u16();
        assert!(
            ![401, 403, 405, 500].contains(&status),
            "{endpoint:?}: {status}"
        );
    }
}

#[tokio::test]
async fn the_endpoints_listed_here_need_a_key_of_no_particular_scope() {
    let server = TestServer::start().await;
    let client = server.client(&[]).await;
    let mut found = Vec::new();
    for endpoint in routes::all() {
        if endpoint.access == Access::AnyKey {
            let status = call(&client, &endpoint).await.status;
            assert!(status.is_success(), "{endpoint:?}: {status}");
            found.push(endpoint.path);
        }
    }
    assert_eq!(found, ANY_KEY);
}

#[tokio::test]
async fn only_the_endpoints_listed_here_ask_for_no_key() {
    for endpoint in routes::all()
        .into_iter()
        .filter(|endpoint| endpoint.access == Access::Open)
    {
        let path = endpoint.path.as_str();
        let listed = OPEN.contains(&path) || is_hidden(path);
        assert!(listed, "{endpoint:?}");
    }
}

#[tokio::test]
async fn the_document_and_the_routes_agree() {
    let document = openapi();
    let mut documented = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let scope = operation["security"][0]["bearer"][0]
                .as_str()
                .map(str::to_owned);
            documented.push((method.to_uppercase(), path.clone(), scope));
        }
    }
    let mut routed: Vec<_> = routes::all()
        .iter()
        .filter(|endpoint| !is_hidden(&endpoint.path))
        .map(|endpoint| {
            let scope = match endpoint.access {
                Access::Scope(scope) => Some(scope.to_string()),
                Access::AnyKey | Access::Open => None,
            };
            (endpoint.method.to_string(), endpoint.path.clone(), scope)
        })
        .collect();
    documented.sort();
    routed.sort();
    assert_eq!(documented, routed);
}

/// Specification, "Endpoints".
#[test]
fn the_scopes_are_those_of_the_specification() {
    let specified = [
        ("GET", "/api/v1/files", "read"),
        ("POST", "/api/v1/files", "write"),
        ("POST", "/api/v1/files/upload-url", "write"),
        ("POST", "/api/v1/files/{file_id}/confirm-upload", "write"),
        ("GET", "/api/v1/files/{file_id}/content", "read"),
        ("POST", "/api/v1/agent/runs", "read"),
        ("GET", "/api/v1/jobs", "read"),
        ("POST", "/api/v1/job-executions", "write"),
        ("PATCH", "/api/v1/job-executions/{execution_id}", "write"),
        (
            "POST",
            "/api/v1/job-executions/{execution_id}/revert",
            "write",
        ),
        ("POST", "/api/v1/data/write", "write"),
        ("POST", "/api/v1/ml-models", "write"),
        ("GET", "/api/v1/ml-models", "read"),
        ("GET", "/api/v1/ml-models/{ml_model_id}", "read"),
        (
            "POST",
            "/api/v1/ml-models/{ml_model_id}/cancel-training",
            "write",
        ),
        ("POST", "/api/v1/notifications", "write"),
    ];
    let guarded = guarded();
    for (method, path, scope) in specified {
        let found = guarded
            .iter()
            .find(|(it, _)| it.method.as_str() == method && it.path == path);
        let found = found.unwrap_or_else(|| panic!("{method} {path} is missing"));
        assert_eq!(found.1.as_str(), scope, "{method} {path}");
    }
}
