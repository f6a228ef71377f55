//! Sessions of browsers: `/api/v1/session`, and cookies wherever a key is accepted.

use labdata_application::people::sessions::sign_in_link;
use labdata_domain::people::{scope::Scope, tenancy::UserChange};
use labdata_ports::Clock as _;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use crate::server::{Client, Reply, TestServer, send};

const SESSION: &str = "/api/v1/session";
const ME: &str = "/api/v1/me";
const START: &str = "/api/v1/job-executions";

/// Signs in and returns the cookie.
async fn signed_in(server: &TestServer, body: Value) -> (Reply, String) {
    let reply = server.anonymous().post(SESSION, &body).await;
    let cookie = reply.header("set-cookie").unwrap();
    let (cookie, _) = cookie.split_once(';').unwrap();
    let cookie = cookie.to_owned();
    (reply, cookie)
}

async fn with_cookie(client: &Client, method: Method, path: &str, cookie: &str) -> Reply {
    let request = client.request(method, path).header("cookie", cookie);
    send(request.header("sec-fetch-site", "same-origin")).await
}

#[tokio::test]
async fn a_pasted_key_opens_a_session_that_is_accepted_as_the_key_is() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::Read], |_| {}).await;
    let (reply, cookie) = signed_in(&server, json!({"api_key": key})).await;
    let me = server.with_key(&key).get(ME).await.json(200);
    assert_eq!(reply.json(200), me);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let presented = reply.header("set-cookie").unwrap();
    let attributes = "; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax";
    assert!(presented.starts_with("labdata-session="), "{presented}");
    assert!(presented.ends_with(attributes), "{presented}");
    assert!(!presented.contains(&key));

    let browser = server.anonymous();
    for path in [SESSION, ME] {
        let reply = with_cookie(&browser, Method::GET, path, &cookie).await;
        assert_eq!(reply.json(200), me);
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    let list = with_cookie(&browser, Method::GET, "/api/v1/jobs", &cookie).await;
    assert_eq!(list.json(200), json!([]));
    let refused = with_cookie(&browser, Method::POST, START, &cookie).await;
    assert!(
        refused.detail(403).contains("write"),
        "the key may only read"
    );
}

#[tokio::test]
async fn a_stranger_cannot_make_the_server_buffer_much() {
    let server = TestServer::start().await;
    let stranger = server.anonymous();
    let long = json!({"token": "x".repeat(16_384)});
    stranger.post(SESSION, &long).await.detail(413);
    let chunked = stranger
        .request(Method::POST, SESSION)
        .header("content-type", "application/json")
        .body(reqwest::Body::wrap_stream(futures::stream::iter([Ok::<
            _,
            std::io::Error,
        >(
            long.to_string(),
        )])));
    send(chunked).await.detail(413);
    let short = json!({"token": "x".repeat(16_000)});
    stranger.post(SESSION, &short).await.detail(401);
}

#[tokio::test]
async fn a_link_signs_its_user_in_once_within_half_an_hour() {
    let server = TestServer::start().await;
    let link = async || {
        let token = sign_in_link(&server.services, "lab", "Ada@example.org").await;
        token.unwrap().reveal().to_owned()
    };
    let token = link().await;
    let (reply, cookie) = signed_in(&server, json!({"token": token})).await;
    let me = reply.json(200);
    assert_eq!(me["user"]["id"], server.user.to_string());
    assert_eq!(me["api_key"]["scopes"], json!(["read", "write", "admin"]));
    let browser = server.anonymous();
    let started = with_cookie(&browser, Method::POST, START, &cookie).await;
    assert_eq!(
        started.json(200)["started_by"]["user"],
        crate::server::named(&me["user"])
    );

    let again = browser.post(SESSION, &json!({"token": token})).await;
    assert!(again.detail(401).contains("labdata sign-in"));
    let late = link().await;
    server.clock.advance(Duration::minutes(30));
    let late = browser.post(SESSION, &json!({"token": late})).await;
    late.detail(401);
}

#[tokio::test]
async fn a_change_with_a_cookie_comes_from_the_platforms_own_pages() {
    let server = TestServer::start().await;
    let key = server.key(&Scope::ALL, |_| {}).await;
    let (_, cookie) = signed_in(&server, json!({"api_key": key})).await;
    let own = format!("http://{}", server.address);
    for (header, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("origin", "https://evil.example", 403),
        ("x-nothing", "", 403),
        ("sec-fetch-site", "none", 200),
        ("origin", &own, 200),
    ] {
        let request = server.anonymous().request(Method::POST, START);
        let reply = send(request.header("cookie", &cookie).header(header, value)).await;
        assert_eq!(reply.status, status, "{header}: {value}");
        let request = server.anonymous().request(Method::GET, ME);
        let reply = send(request.header("cookie", &cookie).header(header, value)).await;
        assert_eq!(reply.status, 200, "reading changes nothing");
    }
    // A request with a key ignores the cookie, be it good or bad.
    let request = server.with_key(&key).request(Method::POST, START);
    let request = request.header("cookie", &cookie);
    let reply = send(request.header("sec-fetch-site", "cross-site")).await;
    assert_eq!(reply.status, 200);
    let request = server.with_key("nonsense").request(Method::GET, ME);
    assert_eq!(send(request.header("cookie", &cookie)).await.status, 401);
}

#[tokio::test]
async fn a_session_ends_when_its_holder_signs_out() {
    let server = TestServer::start().await;
    let key = server.key(&Scope::ALL, |_| {}).await;
    let (_, cookie) = signed_in(&server, json!({"api_key": key})).await;
    let (_, other) = signed_in(&server, json!({"api_key": key})).await;
    assert_ne!(cookie, other);
    let browser = server.anonymous();
    assert_eq!(
        with_cookie(&browser, Method::GET, ME, &cookie).await.status,
        200
    );
    let ended = with_cookie(&browser, Method::DELETE, SESSION, &cookie).await;
    assert_eq!(ended.status, 204);
    let removal = ended.header("set-cookie").unwrap();
    assert!(removal.starts_with("labdata-session=; "), "{removal}");
    assert!(removal.contains("Max-Age=0"), "{removal}");
    for path in [SESSION, ME] {
        let reply = with_cookie(&browser, Method::GET, path, &cookie).await;
        assert!(reply.detail(401).contains("sign in"));
        assert_eq!(
            with_cookie(&browser, Method::GET, path, &other)
                .await
                .status,
            200
        );
    }
}

#[tokio::test]
async fn a_session_ends_with_its_key_its_user_a_pause_or_a_week() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let browser = server.anonymous();
    let status = async |cookie: &str| with_cookie(&browser, Method::GET, ME, cookie).await.status;
    let key = server.key(&[Scope::Read], |_| {}).await;
    let begin = async || signed_in(&server, json!({"api_key": key})).await;

    let (_, cookie) = begin().await;
    server.clock.advance(Duration::hours(11));
    assert_eq!(status(&cookie).await, 200, "used within 12 h");
    server.clock.advance(Duration::hours(11));
    assert_eq!(status(&cookie).await, 200, "its use was noted");
    server.clock.advance(Duration::hours(12));
    assert_eq!(status(&cookie).await, 401);

    let (_, cookie) = begin().await;
    for _ in 0..15 {
        server.clock.advance(Duration::hours(11));
        assert_eq!(status(&cookie).await, 200);
    }
    server.clock.advance(Duration::hours(3));
    assert_eq!(status(&cookie).await, 401, "after seven days");

    let (reply, cookie) = begin().await;
    assert_eq!(status(&cookie).await, 200);
    let id = reply.json(200)["api_key"]["id"].clone();
    let path = format!("/api/v1/api-keys/{}", id.as_str().unwrap());
    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(status(&cookie).await, 401, "its key is revoked");

    let token = sign_in_link(&server.services, "lab", "ada@example.org").await;
    let (_, cookie) = signed_in(&server, json!({"token": token.unwrap().reveal()})).await;
    assert_eq!(status(&cookie).await, 200);
    // As another server disables them.
    let disabled = UserChange {
        disabled: Some(true),
        ..UserChange::default()
    };
    let (tenancy, now) = (&server.services.tenancy, server.clock.now());
    let changed = tenancy.update_user(server.organization, server.user, &disabled, now);
    changed.await.unwrap();
    server.clock.advance(Duration::seconds(5));
    assert_eq!(status(&cookie).await, 401, "its user is disabled");
    let link = sign_in_link(&server.services, "lab", "ada@example.org").await;
    assert!(link.unwrap_err().to_string().contains("disabled"));
}

#[tokio::test]
async fn what_signs_nobody_in_is_refused() {
    let server = TestServer::start().await;
    let browser = server.anonymous();
    for (body, problem) in [
        (json!({}), ("missing", "body.api_key")),
        (
            json!({"api_key": "a", "token": "b"}),
            ("value_error", "body.token"),
        ),
        (json!({"api_key": 1}), ("string_type", "body.api_key")),
    ] {
        let problem = (problem.0.to_owned(), problem.1.to_owned());
        assert_eq!(browser.post(SESSION, &body).await.problems(), [problem]);
    }
    let unknown = format!("ldk_zzzzzzzz_{}", "0".repeat(43));
    for body in [
        json!({"api_key": "nonsense"}),
        json!({"api_key": unknown}),
        json!({"token": "nonsense"}),
        json!({"token": "A".repeat(43)}),
    ] {
        let reply = browser.post(SESSION, &body).await;
        reply.detail(401);
        assert_eq!(reply.header("set-cookie"), None);
    }
    for cookie in ["labdata-session=", "labdata-session=nonsense", "x=y"] {
        let reply = with_cookie(&browser, Method::GET, ME, cookie).await;
        assert_eq!(reply.status, 401, "{cookie}");
    }
    let key = server.key(&Scope::ALL, |_| {}).await;
    let request = browser.request(Method::POST, SESSION);
    let request = request.json(&json!({"api_key": key}));
    let reply = send(request.header("idempotency-key", "k")).await;
    assert!(reply.detail(400).contains("Idempotency-Key"));
    assert_eq!(reply.header("set-cookie"), None);
}
