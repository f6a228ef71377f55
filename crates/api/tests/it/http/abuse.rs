//! Clients that are slow, many or greedy, over real sockets.

use std::time::{Duration, Instant};

use labdata_api::http::rate_limit::RateLimit;
use labdata_domain::keys::scope::Scope;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::server::TestServer;

const JOBS: &str = "/api/v1/jobs";

/// Sends bytes, leaves the connection open, and returns what the server sends before it closes it.
async fn answer_to(server: &TestServer, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may refuse while the rest is sent.
    drop(stream.write_all(request).await);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A reset ends it as well.
    drop(
        timeout(Duration::from_secs(20), read)
            .await
            .expect("the server holds the connection"),
    );
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_head_that_does_not_end_is_refused_after_ten_seconds() {
    let server = TestServer::start().await;
    let begun = Instant::now();
    let answer = answer_to(&server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(begun.elapsed() >= Duration::from_secs(9), "refused at once");
}

#[tokio::test]
async fn a_huge_head_is_refused_and_others_are_served() {
    let server = TestServer::start().await;
    let line = format!("X-Large: {}\r\n", "a".repeat(8000));
    let many = "X: y\r\n".repeat(20_000);
    for headers in [line.repeat(100), many] {
        let head = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let answer = answer_to(&server, head.as_bytes()).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(refused, "{answer}");
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
    let answer = server.anonymous();
    let answer = answer.get("/healthz");
    let answer = timeout(Duration::from_secs(5), answer).await;
    answer.expect("silent connections block others").json(200);
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
