//! Export of spans by OTLP, to a collector inside the test.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use crate::process::{Program, directory};

/// Answers one request, and returns its first line and its body.
fn receive(mut stream: TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(response.as_bytes()).ok()?;
    Some((first, body))
}

/// The URL of a collector, and what it receives.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Some(request) = receive(stream.unwrap()) else {
                continue;
            };
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (url, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spans_of_a_request_reach_a_collector() {
    const REQUEST_ID: &str = "a-request-of-the-export-test";
    let (directory, (url, received)) = (directory(), collector());
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let program = Program::serve(directory.path(), &environment);
    let key = program.key.clone().unwrap();
    let jobs = reqwest::Client::new().get(format!("{}/api/v1/jobs", program.url));
    let jobs = jobs.bearer_auth(&key).header("x-request-id", REQUEST_ID);
    assert_eq!(jobs.send().await.unwrap().status(), 200);

    let mut all = Vec::new();
    let contains = |all: &[u8], text: &str| all.windows(text.len()).any(|it| it == text.as_bytes());
    // Without the log's level, which is `warn` here.
    while !contains(&all, REQUEST_ID) {
        let (first, body) = received.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(first.starts_with("POST /v1/traces "), "{first}");
        all.extend(body);
    }
    let (ended, _) = program.end("TERM");
    assert!(ended.success());
    for (_, body) in received.try_iter() {
        all.extend(body);
    }
    let expected = [
        "labdata",
        "/api/v1/jobs",
        "list_jobs",
        "database",
        "crates/adapters/postgres/src",
    ];
    for text in expected {
        assert!(contains(&all, text), "{text}");
    }
    assert!(!contains(&all, key.splitn(3, '_').nth(2).unwrap()));
}
