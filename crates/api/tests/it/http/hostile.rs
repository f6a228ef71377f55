//! Hostile bodies: always an answer, in good time, never a 500.

use std::time::Duration;

use labdata_domain::people::scope::Scope;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::server::TestServer;

const PATH: &str = "/api/v1/instruments";
const LIMIT: usize = 4_718_592;

#[tokio::test]
async fn what_is_not_json_is_a_problem_at_its_byte() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Admin]).await;
    let nested = format!("{{\"name\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let open = "[".repeat(4_000_000);
    let bodies: Vec<Vec<u8>> = vec![
        b"{".to_vec(),
        b"{\"name\": \"torn".to_vec(),
        b"{\"name\": 'single'}".to_vec(),
        b"{\"name\": NaN}".to_vec(),
        b"{\"name\": Infinity}".to_vec(),
        b"{\"name\": 1e999}".to_vec(),
        b"{\"name\": \"\\ud800\"}".to_vec(),
        b"{\"name\": \"\\udc00\\ud800\"}".to_vec(),
        b"{\"name\": \"\xff\xfe\"}".to_vec(),
        b"{\"name\": \"\xed\xa0\x80\"}".to_vec(),
        b"{\"name\": \"raw \x00 byte\"}".to_vec(),
        b"\xef\xbb\xbf{\"name\": \"x\"}".to_vec(),
        b"\xff\xfe{\x00}\x00".to_vec(),
        b"{\"name\": \"x\"} trailing".to_vec(),
        b"\x1f\x8b\x08\x00".to_vec(),
        b"\x00".to_vec(),
        nested.into_bytes(),
        open.into_bytes(),
    ];
    for body in bodies {
        let start = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let reply = client.post_raw(PATH, body).await;
        let problem = &reply.json(422)["detail"][0];
        assert_eq!(problem["type"], "json_invalid", "{start}");
        assert_eq!(problem["msg"], "JSON decode error", "{start}");
        assert_eq!(problem["loc"][0], "body", "{start}");
        assert!(problem["loc"][1].is_u64(), "{start}: {problem}");
        assert!(problem["ctx"]["error"].is_string(), "{start}");
    }
}

#[tokio::test]
async fn an_integer_that_would_lose_digits_is_refused_wherever_a_value_is_kept_as_it_is_sent() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Read, Scope::Write]).await;
    let number = "123456789012345678901";
    for (path, body) in [
        ("jobs/x/run", r#"{"parameters": {"sample": 0}}"#),
        (
            "notifications",
            r#"{"title": "x", "dedupe_key": "x", "data": {"ids": [0]}}"#,
        ),
        (
            "jobs",
            r#"{"name": "x", "code": "", "parameter_definitions": [
                {"widget_type": "text", "parameter_name": "sample", "default": 0}]}"#,
        ),
        ("tools/query", r#"{"query": "select %s", "params": [0]}"#),
    ] {
        let path = format!("/api/v1/{path}");
        let body = body.replace('0', number);
        let reply = client.post_raw(&path, body.clone().into_bytes()).await;
        let problem = &reply.json(422)["detail"][0];
        assert_eq!(problem["type"], "json_invalid", "{body}");
        let error = problem["ctx"]["error"].as_str().unwrap();
        assert!(error.ends_with("send it as a string"), "{error}");
    }
}

#[tokio::test]
async fn strange_values_are_problems_of_their_field() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Admin, Scope::Write]).await;
    for (body, kind) in [
        (r#"{"name": "a\u0000b"}"#, "value_error"),
        (r#"{"name": ""}"#, "string_too_short"),
        (r#"{"name": 123456789012345678901234567890}"#, "string_type"),
        (r#"{"name": {"a": [1]}}"#, "string_type"),
        (r#"{"name": null}"#, "string_type"),
    ] {
        let problems = client.post_raw(PATH, body).await.problems();
        assert_eq!(
            problems,
            [(kind.to_owned(), "body.name".to_owned())],
            "{body}"
        );
    }
    for (minutes, kind) in [
        (
            "123456789012345678901234567890123456789012345678901234567890",
            "less_than_equal",
        ),
        ("-1e300", "greater_than_equal"),
        ("1e-300", "int_from_float"),
        ("\"9e9\"", "int_parsing"),
        ("[]", "int_type"),
    ] {
        let body = format!("{{\"timeout_minutes\": {minutes}}}");
        let problems = client
            .post_raw("/api/v1/job-executions", body)
            .await
            .problems();
        assert_eq!(
            problems,
            [(kind.to_owned(), "body.timeout_minutes".to_owned())],
            "{minutes}"
        );
    }
    // Of duplicate names the last counts.
    let made = client
        .post_raw(PATH, r#"{"name": 1, "name": "last"}"#)
        .await
        .json(200);
    assert_eq!(made["name"], "last");
}

#[tokio::test]
async fn an_answer_stays_short_however_long_the_body_is() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Admin]).await;
    let many = format!(
        "{{\"name\": \"n\", \"scopes\": [{}1]}}",
        "1,".repeat(2_000_000)
    );
    let reply = client.post_raw("/api/v1/api-keys", many).await;
    assert_eq!(
        reply.problems(),
        [("too_long".to_owned(), "body.scopes".to_owned())]
    );
    assert!(reply.text.len() < 10_000);
    let long = format!("{{\"name\": \"{}\"}}", "é".repeat(2_000_000));
    let reply = client.post_raw(PATH, long).await;
    assert_eq!(
        reply.problems(),
        [("string_too_long".to_owned(), "body.name".to_owned())]
    );
    assert!(reply.text.len() < 10_000);
}

#[tokio::test]
async fn bodies_up_to_the_limit_are_read_and_longer_ones_refused() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Admin]).await;
    let body = |length: usize| {
        let start = "{\"name\": \"x\"";
        format!("{start}{}}}", " ".repeat(length - start.len() - 1))
    };
    client.post_raw(PATH, body(LIMIT - 1)).await.json(200);
    client.post_raw(PATH, body(LIMIT)).await.detail(413);
    client.post_raw(PATH, body(3 * LIMIT)).await.detail(413);
}

#[tokio::test]
async fn a_chunked_body_is_measured_as_it_arrives() {
    let server = TestServer::start().await;
    let client = server.client(&[Scope::Admin]).await;
    let chunk = bytes::Bytes::from(vec![b' '; 65_536]);
    let chunks = |count: usize| {
        let chunk = chunk.clone();
        let parts = (0..count).map(move |_| Ok::<_, std::io::Error>(chunk.clone()));
        reqwest::Body::wrap_stream(futures::stream::iter(parts))
    };
    client.post_raw(PATH, chunks(100)).await.detail(413);
    client.post_raw(PATH, chunks(500)).await.detail(413);
    assert_eq!(
        client.post_raw(PATH, chunks(10)).await.problems()[0].0,
        "missing"
    );
}

/// Sends bytes, and returns what comes back before the server closes the connection.
async fn raw(server: &TestServer, request: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut response = Vec::new();
    let read = stream.read_to_end(&mut response);
    timeout(Duration::from_secs(5), read)
        .await
        .expect("the server hangs")
        .unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn a_length_that_is_announced_too_large_is_refused_unread() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::Admin], |_| {}).await;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
    );
    let response = raw(&server, &head, b"{").await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
}

#[tokio::test]
async fn a_body_that_breaks_off_ends_the_request_and_nothing_else() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::Admin], |_| {}).await;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    );
    raw(&server, &head, b"{\"name\": \"half").await;
    let list = server
        .client(&[Scope::Read])
        .await
        .get(PATH)
        .await
        .json(200);
    assert_eq!(list, serde_json::json!([]));
}

#[tokio::test]
async fn a_client_that_waits_with_its_body_is_answered_soon() {
    let server = TestServer::start().await;
    let key = server.key(&[Scope::Admin], |_| {}).await;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = [0; 12];
    let read = stream.read_exact(&mut response);
    timeout(Duration::from_secs(5), read)
        .await
        .expect("the server hangs")
        .unwrap();
    assert_eq!(&response, b"HTTP/1.1 413");
}
