//! Every operation against every kind of key, from the list of operations itself.

use labdata_api::routes::{self, openapi};
use labdata_domain::people::scope::Scope;
use labdata_operations::{About, Access, Operation};
use reqwest::Method;

use crate::server::{Client, Reply, TestServer, send};

/// The operations that ask for no key. Adding one is a decision.
const OPEN: &[&str] = &[
    "/api/v1/openapi.json",
    "/api/v1/session",
    "/healthz",
    "/metrics",
    "/readyz",
];

/// Parts of the path that no document shows and that ask for no key, for a reason of their own:
/// the console and the paths of notices that lead to its pages, the interactive reference, URLs that carry a
/// signature, and the exchange of a run's nonce.
const HIDDEN: &[&str] = &[
    "/api/v1/session/oidc",
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

/// The operations for which any valid key will do. Adding one is a decision.
const ANY_KEY: &[&str] = &["/api/v1/me", "/api/v1/session", "/api/v1/session"];

/// The operations that need a scope.
fn guarded() -> Vec<(Operation, Scope)> {
    let scoped = |it: Operation| match it.access {
        Access::Scope(scope) => Some((it, scope)),
        Access::AnyKey | Access::Open => None,
    };
    let operations = labdata_operations::all().into_iter();
    operations.filter_map(scoped).collect()
}

/// Calls the operation with ids that nothing bears and no body.
async fn call(client: &Client, operation: &Operation) -> Reply {
    let (method, path) = (operation.about.method, path_of(operation));
    let method = Method::from_bytes(method.as_str().as_bytes()).unwrap();
    send(client.request(method, &path)).await
}

/// The path of the operation with ids that nothing bears.
fn path_of(operation: &Operation) -> String {
    let path = operation.about.path;
    let mut called = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        called.push_str(before);
        called.push_str("0191d5a4-0000-7000-8000-000000000000");
        rest = after.split_once('}').unwrap().1;
    }
    called.push_str(rest);
    called
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
    let closed = |operation: &Operation| operation.access != Access::Open;
    for operation in labdata_operations::all().into_iter().filter(closed) {
        for client in &clients {
            let reply = call(client, &operation).await;
            assert_eq!(reply.status, 401, "{operation:?}");
            assert_eq!(
                reply.header("www-authenticate"),
                Some("Bearer"),
                "{operation:?}"
            );
        }
    }
}

#[tokio::test]
async fn every_guarded_endpoint_asks_for_its_scope_and_no_other() {
    let server = TestServer::start().await;
    for (operation, scope) in guarded() {
        let others: Vec<Scope> = Scope::ALL
            .into_iter()
            .filter(|other| *other != scope)
            .collect();
        for lacking in [&others[..], &others[..1], &others[1..], &[]] {
            let reply = call(&server.client(lacking).await, &operation).await;
            let expected = format!("this API key lacks the {scope} scope");
            assert_eq!(reply.detail(403), expected, "{operation:?}");
        }
        let status = call(&server.client(&[scope]).await, &operation)
            .await
            .status
            .as_u16();
        assert!(
            ![401, 403, 405, 500].contains(&status),
            "{operation:?}: {status}"
        );
    }
}

/// A caller without the scope does not learn what is wrong with the rest of the request.
#[tokio::test]
async fn the_scope_is_checked_before_body_and_query() {
    let server = TestServer::start().await;
    let without = async |scope: Scope| {
        let others: Vec<Scope> = Scope::ALL.into_iter().filter(|it| *it != scope).collect();
        server.client(&others).await
    };
    let mut calls: Vec<(Operation, Scope, &str)> = guarded()
        .into_iter()
        .map(|(operation, scope)| (operation, scope, "?limit=x&as_of=x"))
        .collect();
    for (query, scope) in [
        ("", Scope::Admin),
        ("?mode=x", Scope::Write),
        ("?mode=ensure", Scope::Write),
    ] {
        let mut all = labdata_operations::all().into_iter();
        let define = all.find(|it| it.about.name == "define_table").unwrap();
        calls.push((define, scope, query));
    }
    for (operation, scope, query) in calls {
        let method = Method::from_bytes(operation.about.method.as_str().as_bytes()).unwrap();
        let path = path_of(&operation) + query;
        for body in [r#"{"surprise": ["#, "{}", "[3]"] {
            let request = without(scope).await.request(method.clone(), &path);
            let request = request.header("content-type", "application/json");
            let reply = send(request.body(body)).await;
            let expected = format!("this API key lacks the {scope} scope");
            assert_eq!(reply.detail(403), expected, "{operation:?} {query}");
        }
    }
}

#[tokio::test]
async fn the_operations_listed_here_need_a_key_of_no_particular_scope() {
    let server = TestServer::start().await;
    let client = server.client(&[]).await;
    let mut found = Vec::new();
    for operation in labdata_operations::all() {
        // Its scope depends on what it does: catalog::scripted tests both.
        let is_decided_by_mode = operation.about.name == "define_table";
        if operation.access == Access::AnyKey && !is_decided_by_mode {
            let status = call(&client, &operation).await.status;
            assert!(status.is_success(), "{operation:?}: {status}");
            found.push(operation.about.path);
        }
    }
    found.sort_unstable();
    assert_eq!(found, ANY_KEY);
}

#[test]
fn only_the_operations_listed_here_ask_for_no_key() {
    let operations = labdata_operations::all();
    let open = operations.iter().filter(|it| it.access == Access::Open);
    let mut found: Vec<_> = open.map(|it| it.about.path).collect();
    found.sort_unstable();
    assert_eq!(found, OPEN);
}

#[test]
fn only_the_paths_listed_here_are_no_operations() {
    for endpoint in routes::hidden() {
        let path = endpoint.path.as_str();
        let is_listed = path == "/" || HIDDEN.iter().any(|start| path.starts_with(start));
        assert!(is_listed, "{endpoint:?}");
    }
}

#[test]
fn the_document_states_the_scope_of_each_operation() {
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
    let declared = labdata_operations::all().into_iter().map(|operation| {
        let About { method, path, .. } = operation.about;
        let scope = match operation.access {
            Access::Scope(scope) => Some(scope.to_string()),
            Access::AnyKey | Access::Open => None,
        };
        (method.as_str().to_owned(), path.to_owned(), scope)
    });
    let mut declared: Vec<_> = declared.collect();
    documented.sort();
    declared.sort();
    assert_eq!(documented, declared);
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
            .find(|(it, _)| it.about.method.as_str() == method && it.about.path == path);
        let found = found.unwrap_or_else(|| panic!("{method} {path} is missing"));
        assert_eq!(found.1.as_str(), scope, "{method} {path}");
    }
}
