//! Clients that are slow, many or greedy, over real sockets.

use std::time::{Duration, Instant};

use labdata_api::http::rate_limit::RateLimit;
use labdata_domain::people::scope::Scope;
use labdata_test_database::TestDatabase;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_postgres::NoTls;

use crate::{
    process::{Program, directory},
    server::TestServer,
};

const JOBS: &str = "/api/v1/jobs";

/// Sends bytes, leaves the connection open, and returns what the server sends before it closes it.
async fn response_to(server: &TestServer, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may refuse while the rest is sent.
    drop(stream.write_all(request).await);
    let mut response = Vec::new();
    let read = stream.read_to_end(&mut response);
    // A reset ends it as well.
    drop(
        timeout(Duration::from_secs(20), read)
            .await
            .expect("the server holds the connection"),
    );
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn a_head_that_does_not_end_is_refused_after_ten_seconds() {
    let server = TestServer::start().await;
    let begun = Instant::now();
    let response = response_to(&server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ").await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(begun.elapsed() >= Duration::from_secs(9), "refused at once");
}

#[tokio::test]
async fn a_client_that_reads_nothing_of_its_answer_is_cut_off() {
    let server = TestServer::start_changed(|app| app.stall = Duration::from_secs(1)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(&request.repeat(100)).await.unwrap();
    let mut begin = [0; 15];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    let client = stream.local_addr().unwrap();
    let is_open = || is_established(server.address.port(), client.port());
    assert!(is_open());
    let closed = async {
        while is_open() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let closed = timeout(Duration::from_secs(20), closed).await;
    closed.expect("the server holds the connection");
    server.anonymous().get("/healthz").await.json(200);
}

/// Returns true if the server's side of a connection on this machine is open.
fn is_established(server: u16, client: u16) -> bool {
    const ESTABLISHED: &str = "01";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = |index: usize| fields.get(index).and_then(|it| it.split(':').nth(1));
        port(1) == Some(&format!("{server:04X}"))
            && port(2) == Some(&format!("{client:04X}"))
            && fields.get(3) == Some(&ESTABLISHED)
    })
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    const KEY: &str = "ldk_slowness_0123456789abcdefghijklmnopqrstuvwxyz";
    let (directory, own) = (directory(), TestDatabase::new().await);
    let settings = [
        ("DATABASE_URL", own.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
        ("LABDATA_REQUEST_TIMEOUT_SECONDS", "1"),
    ];
    let program = Program::serve(directory.path(), &settings);
    let slow = json!({ "query": "SELECT count(*) FROM generate_series(1, 2000000000) AS s (n)" });
    let http = reqwest::Client::new();
    let query = http.post(format!("{}/api/v1/tools/query", program.url));
    let response = query.bearer_auth(KEY).json(&slow).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    assert!(response.headers().contains_key("x-request-id"));
    let detail: Value = response.json().await.unwrap();
    let detail = detail["detail"].as_str().unwrap();
    assert!(detail.contains("longer than 1 s"), "{detail}");
    let (behind, connection) = tokio_postgres::connect(own.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let running = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%2000000000%' \
                   AND pid <> pg_backend_pid() AND datname = current_database()";
    while !behind.query(running, &[]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_huge_head_is_refused_and_others_are_served() {
    let server = TestServer::start().await;
    let line = format!("X-Large: {}\r\n", "a".repeat(8000));
    let many = "X: y\r\n".repeat(20_000);
    for headers in [line.repeat(100), many] {
        let head = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let response = response_to(&server, head.as_bytes()).await;
        let refused = response.is_empty() || response.starts_with("HTTP/1.1 4");
        assert!(refused, "{response}");
        server.anonymous().get("/healthz").await.json(200);
    }
}

#[tokio::test]
async fn many_silent_connections_keep_nobody_waiting() {
    let server = TestServer::start().await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let response = server.anonymous();
    let response = response.get("/healthz");
    let response = timeout(Duration::from_secs(5), response).await;
    response.expect("silent connections block others").json(200);
}

#[tokio::test]
async fn a_key_with_too_many_requests_is_told_when_to_try_again() {
    let limit = RateLimit::per_minute(Some(5));
    let server = TestServer::start_changed(|app| app.rate_limit = limit).await;
    let greedy = server.client(&[Scope::Read]).await;
    for _ in 0..5 {
        greedy.get(JOBS).await.json(200);
    }
    let refused = greedy.get(JOBS).await;
    let detail = refused.detail(429);
    assert!(
        detail.contains("more than 5 requests per minute"),
        "{detail}"
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=12).contains(&wait), "{wait}");
    // Others are not affected, nor is who shows no key.
    let other = server.client(&[Scope::Read]).await;
    other.get(JOBS).await.json(200);
    server.anonymous().get(JOBS).await.detail(401);
    server.anonymous().get("/healthz").await.json(200);
}
