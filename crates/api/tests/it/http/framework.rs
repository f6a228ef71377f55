//! Rules of every endpoint: order of checks, ids, methods, failures.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    jobs::{Job, ScriptVersion, VersionSummary},
    page::{Page, PageRequest},
    people::scope::Scope,
};
use labdata_memory::FixedClock;
use labdata_ports::{
    Clock, PortError,
    jobs::{JobFilter, JobRepository},
};
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::json;

use crate::server::{TestServer, in_memory, send};

const START: &str = "/api/v1/job-executions";

#[tokio::test]
async fn key_comes_before_scope_before_type_before_size_before_shape() {
    let server = TestServer::start().await;
    let huge = vec![b'['; 5_000_000];
    let attempt = |client: crate::server::Client, content_type: &'static str, body: Vec<u8>| async move {
        let path = "/api/v1/instruments?limit=x";
        let request = client
            .request(Method::POST, path)
            .header(CONTENT_TYPE, content_type);
        send(request.body(body)).await
    };
    let reader = server.client(&[Scope::Read]).await;
    let admin = server.client(&[Scope::Admin]).await;
    attempt(server.anonymous(), "text/plain", huge.clone())
        .await
        .detail(401);
    attempt(reader, "text/plain", huge.clone())
        .await
        .detail(403);
    attempt(admin.clone(), "text/plain", huge.clone())
        .await
        .detail(415);
    attempt(admin.clone(), "application/json", huge)
        .await
        .detail(413);
    attempt(admin, "application/json", b"[".to_vec())
        .await
        .json(422);
}

#[tokio::test]
async fn problems_of_body_and_query_come_together() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body = json!({"name": 1, "scopes": ["read", "all", 7], "expires_at": "soon"});
    let reply = client.post("/api/v1/api-keys", &body).await;
    let problems = reply.problems();
    let found: Vec<(&str, &str)> = problems
        .iter()
        .map(|(kind, loc)| (kind.as_str(), loc.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("string_type", "body.name"),
            ("enum", "body.scopes.1"),
            ("enum", "body.scopes.2"),
            ("datetime_from_date_parsing", "body.expires_at"),
        ]
    );
    let first = &reply.json(422)["detail"][1];
    assert_eq!(
        first,
        &json!({
            "type": "enum",
            "loc": ["body", "scopes", 1],
            "msg": "Input should be 'read', 'write' or 'admin'",
            "input": "all",
            "ctx": {"expected": "'read', 'write' or 'admin'"},
        })
    );
    let reply = client
        .get("/api/v1/jobs?limit=abc&archived=maybe&cursor=x")
        .await;
    assert_eq!(reply.problems().len(), 3);
}

#[tokio::test]
async fn a_missing_field_shows_the_object_that_lacks_it() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let reply = client
        .post("/api/v1/instruments", &json!({"description": "x"}))
        .await;
    assert_eq!(
        reply.json(422)["detail"],
        json!([{
            "type": "missing",
            "loc": ["body", "name"],
            "msg": "Field required",
            "input": {"description": "x"},
        }])
    );
    for body in ["", "null", "  \n"] {
        let reply = client.post_raw("/api/v1/instruments", body).await;
        let detail = &reply.json(422)["detail"];
        assert_eq!(
            detail,
            &json!([
                {"type": "missing", "loc": ["body"], "msg": "Field required", "input": null}
            ])
        );
    }
    let reply = client.post_raw("/api/v1/instruments", "[1]").await;
    assert_eq!(
        reply.problems(),
        [("model_attributes_type".to_owned(), "body".to_owned())]
    );
}

#[tokio::test]
async fn limits_are_from_1_to_1000() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    for (limit, kind) in [
        ("0", "greater_than_equal"),
        ("-1", "greater_than_equal"),
        ("1001", "less_than_equal"),
        (
            "99999999999999999999999999999999999999999999",
            "less_than_equal",
        ),
        ("abc", "int_parsing"),
        ("1.5", "int_parsing"),
        ("", "int_parsing"),
    ] {
        let problems = client
            .get(&format!("/api/v1/instruments?limit={limit}"))
            .await
            .problems();
        assert_eq!(
            problems,
            [(kind.to_owned(), "query.limit".to_owned())],
            "{limit}"
        );
    }
    for limit in ["1", "1000"] {
        client
            .get(&format!("/api/v1/instruments?limit={limit}"))
            .await
            .json(200);
    }
    let problems = client
        .get("/api/v1/instruments?cursor=nonsense")
        .await
        .problems();
    assert_eq!(
        problems,
        [("value_error".to_owned(), "query.cursor".to_owned())]
    );
}

#[tokio::test]
async fn only_json_is_read_where_json_is_wanted() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let post = |content_type: Option<&'static str>, body: &'static str| {
        let request = client.request(Method::POST, START).body(body);
        send(match content_type {
            Some(content_type) => request.header(CONTENT_TYPE, content_type),
            None => request,
        })
    };
    for json in [
        "application/json",
        "application/json; charset=utf-8",
        "application/x.y+json",
    ] {
        post(Some(json), "{}").await.json(200);
    }
    for other in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ] {
        post(Some(other), "{}").await.detail(415);
    }
    post(None, "{}").await.detail(415);
    // The specification lets this body be empty, with any Content-Type.
    post(None, "").await.json(200);
    post(Some("application/x-www-form-urlencoded"), "")
        .await
        .json(200);
    let gzip = client
        .request(Method::POST, START)
        .header("content-encoding", "gzip")
        .json(&json!({}));
    send(gzip).await.detail(415);
}

#[tokio::test]
async fn every_answer_carries_a_request_id() {
    let server = TestServer::start().await;
    let client = server.anonymous();
    for path in ["/healthz", "/nowhere", START] {
        let id = client
            .get(path)
            .await
            .header("x-request-id")
            .unwrap()
            .to_owned();
        assert_eq!(id.len(), 36, "{path}: {id}");
    }
    let with_id = |id: &str| {
        send(
            client
                .request(Method::GET, "/healthz")
                .header("x-request-id", id),
        )
    };
    assert_eq!(
        with_id("run-7.~_").await.header("x-request-id"),
        Some("run-7.~_")
    );
    for bad in ["", "a b", "<script>", &"x".repeat(129)] {
        let reply = with_id(bad).await;
        assert_eq!(reply.header("x-request-id").unwrap().len(), 36, "{bad}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_say_so_in_json() {
    let server = TestServer::start().await;
    let client = server.anonymous();
    assert_eq!(client.get("/api/v1/nothing").await.detail(404), "Not Found");
    assert_eq!(client.get("/nothing").await.detail(404), "Not Found");
    let reply = client.delete(START).await;
    assert_eq!(reply.detail(405), "Method Not Allowed");
    let mut allowed: Vec<&str> = reply.header("allow").unwrap().split(", ").collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[tokio::test]
async fn head_answers_as_get_without_the_body() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let reply = send(client.request(Method::HEAD, "/api/v1/jobs")).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, ""));
    let refused = send(server.anonymous().request(Method::HEAD, "/api/v1/jobs")).await;
    assert_eq!(refused.status, 401);
}

/// A repository that does not do what it should.
struct Broken(fn() -> PortError);

#[async_trait]
impl JobRepository for Broken {
    async fn list(
        &self,
        _: OrganizationId,
        _: &JobFilter,
        _: PageRequest,
    ) -> Result<Page<Job>, PortError> {
        Err((self.0)())
    }

    async fn get(&self, _: OrganizationId, _: JobId) -> Result<Job, PortError> {
        Err((self.0)())
    }

    async fn ensure(&self, _: OrganizationId, _: &Job) -> Result<Job, PortError> {
        Err((self.0)())
    }

    async fn add(&self, _: OrganizationId, _: &Job, _: &ScriptVersion) -> Result<(), PortError> {
        Err((self.0)())
    }

    async fn update(
        &self,
        _: OrganizationId,
        _: u64,
        _: &Job,
        _: Option<&ScriptVersion>,
    ) -> Result<bool, PortError> {
        Err((self.0)())
    }

    async fn versions(
        &self,
        _: OrganizationId,
        _: JobId,
        _: PageRequest,
    ) -> Result<Page<VersionSummary>, PortError> {
        Err((self.0)())
    }

    async fn version(
        &self,
        _: OrganizationId,
        _: JobId,
        _: u32,
    ) -> Result<ScriptVersion, PortError> {
        Err((self.0)())
    }
}

async fn broken(how: fn() -> PortError) -> TestServer {
    let clock = Arc::new(FixedClock::default());
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = in_memory(displayed);
    services.jobs = Arc::new(Broken(how));
    TestServer::start_on(services, clock).await
}

#[tokio::test]
async fn a_failure_tells_the_client_nothing_but_the_request_id() {
    let failures: [fn() -> PortError; 3] = [
        || PortError::Internal("password=hunter2".to_owned()),
        || PortError::Corrupt("job.name of 7".to_owned()),
        || panic!("a bug"),
    ];
    for how in failures {
        let server = broken(how).await;
        let client = server.admin().await;
        let reply = client.get("/api/v1/jobs").await;
        let id = reply.header("x-request-id").unwrap();
        let expected = json!({"detail": "internal error", "code": "internal", "request_id": id});
        assert_eq!(reply.json(500), expected);
        // The server still answers.
        client.get("/api/v1/instruments").await.json(200);
        let metrics = client.get("/metrics").await.text;
        assert!(metrics.contains("status=\"500\"} 1"), "{metrics}");
    }
}

#[tokio::test]
async fn an_outcome_that_is_not_known_is_500_with_its_own_code() {
    let server = broken(|| PortError::OutcomeUnknown("db.internal:5432 broke".to_owned())).await;
    let reply = server.admin().await.get("/api/v1/jobs").await;
    let id = reply.header("x-request-id").unwrap();
    let expected = json!({"detail": "internal error", "code": "outcome_unknown", "request_id": id});
    assert_eq!(reply.json(500), expected);
    assert_eq!(reply.header("retry-after"), None);
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_503_and_a_busy_one_429() {
    let server = broken(|| PortError::Unavailable("db.internal:5432 refused".to_owned())).await;
    let detail = server.admin().await.get("/api/v1/jobs").await.detail(503);
    assert!(!detail.contains("5432"), "{detail}");
    let server = broken(|| PortError::Busy("locked".to_owned())).await;
    let reply = server.admin().await.get("/api/v1/jobs").await;
    reply.detail(429);
    assert_eq!(reply.header("retry-after"), Some("1"));
}
