//! `labdata serve` on SIGTERM, with work of every kind in flight.

use std::time::{Duration, Instant};

use labdata_test_database::TestDatabase;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    process::{Program, directory},
    smtp_sink::{Behavior, Sink},
};

const KEY: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

/// A script that ignores SIGTERM.
const STUBBORN: &str = "import signal, time\n\
                        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                        print('begun', flush=True)\n\
                        time.sleep(600)\n";

/// Calls the program, and returns the response before its body has arrived.
async fn call(program: &Program, method: Method, path: &str, body: &Value) -> reqwest::Response {
    let request = reqwest::Client::new()
        .request(method, format!("{}/api/v1/{path}", program.url))
        .bearer_auth(KEY)
        .json(body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response
}

#[tokio::test]
async fn a_stop_drains_requests_runs_and_emails_side_by_side() {
    let (directory, own) = (directory(), TestDatabase::new().await);
    let silent = Sink::start(Behavior::Silent).await;
    let environment = [
        ("DATABASE_URL", own.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
        ("LABDATA_SMTP_URL", &silent.url()),
        ("LABDATA_MAIL_FROM", "lab@example.org"),
    ];
    let program = Program::serve(directory.path(), &environment);

    let wanted = json!({"message": {"email": true}});
    call(&program, Method::PATCH, "notification-preferences", &wanted).await;
    let notification = json!({"title": "Run 7 done", "dedupe_key": "run-7"});
    call(&program, Method::POST, "notifications", &notification).await;
    let job = json!({"name": "stubborn", "code": STUBBORN});
    let job = call(&program, Method::POST, "jobs", &job).await;
    let job: Value = job.json().await.unwrap();
    let path = format!("jobs/{}/run", job["id"].as_str().unwrap());
    let run = call(&program, Method::POST, &path, &Value::Null).await;
    let run: Value = run.json().await.unwrap();
    let id = run["job_execution_id"].as_str().unwrap();
    let path = format!("job-executions/{id}/logs?follow=true");
    let mut log = call(&program, Method::GET, &path, &Value::Null).await;
    let line = log.chunk().await.unwrap().expect("the script's first line");
    assert!(line.starts_with(b"begun"), "{line:?}");
    while silent.connections() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let began = Instant::now();
    let ended = tokio::task::spawn_blocking(|| program.end("TERM"));
    let (status, _) = ended.await.unwrap();
    let took = began.elapsed();
    assert_eq!(status.code(), Some(0));
    // One after the other, request, run and e-mail would take 29 s.
    assert!(took < Duration::from_secs(20), "{took:?}");
}
