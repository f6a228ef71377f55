//! Nonces that runs exchange for their keys, where others see what a run is submitted with.

use labdata_domain::work::{BackendPolicy, RunVisibility};
use labdata_ports::work::runner::KeyExchange;
use reqwest::Method;
use serde_json::{Value, json};

use super::run_lab::{EXECUTIONS, Lab};
use crate::server::{Client, Reply, TestServer, send};

/// A script that runs until it is ended.
const ENDLESS: &str = "time.sleep(3600)";

/// A lab with a worker of a visible backend, and the id of a run that was submitted to it.
async fn lab_with_run() -> (Lab, String, KeyExchange) {
    let mut lab = Lab::without_worker().await;
    lab.policy = BackendPolicy {
        visibility: RunVisibility::BackendUsers,
        ..BackendPolicy::default()
    };
    lab.start_worker();
    let run = lab.queue(ENDLESS).await;
    let exchange = exchange(&lab, &run).await;
    (lab, run, exchange)
}

/// The exchange in the submission of a run, as everyone sees it who sees the backend.
async fn exchange(lab: &Lab, run: &str) -> KeyExchange {
    lab.until(run, "running").await;
    loop {
        if let Some(spec) = lab.specs(run).pop() {
            let mut names = spec.environment.iter().map(|(name, _)| &**name);
            assert!(!names.any(|name| name == "LABDATA_API_KEY"));
            return spec.key_exchange.expect("a nonce");
        }
        super::run_lab::pause().await;
    }
}

async fn redeem(server: &TestServer, nonce: &str) -> Reply {
    let client = server.with_key(nonce);
    send(client.request(Method::POST, "/run-key")).await
}

fn key_of(reply: &Reply) -> String {
    reply.json(200)["key"].as_str().unwrap().to_owned()
}

async fn status_with(client: &Client, run: &str) -> u16 {
    let reply = client.get(&format!("{EXECUTIONS}/{run}")).await;
    reply.status.as_u16()
}

#[tokio::test]
async fn a_nonce_gives_the_key_of_its_run() {
    let (lab, run, exchange) = lab_with_run().await;
    assert_eq!(
        exchange.url,
        format!("http://{}/run-key", lab.server.address)
    );
    assert_eq!(exchange.variable, "LABDATA_API_KEY");
    let reply = redeem(&lab.server, &exchange.nonce).await;
    for (header, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(reply.header(header), Some(value));
    }
    let key = lab.server.with_key(&key_of(&reply));
    assert_eq!(status_with(&key, &run).await, 200);
    let rows = json!({ "tables": [{ "table": "experiment", "rows": [{ "name": "a" }] }] });
    let written = key.post("/api/v1/data/write", &rows).await.json(200);
    assert_eq!(written["job_execution_id"], run.as_str());
    let job = json!({ "name": "another", "code": "print(1)" });
    key.post("/api/v1/jobs", &job).await.detail(403);
}

#[tokio::test]
async fn a_nonce_used_twice_is_refused_and_nobody_keeps_the_key() {
    let (lab, run, exchange) = lab_with_run().await;
    let key = key_of(&redeem(&lab.server, &exchange.nonce).await);
    let key = lab.server.with_key(&key);
    assert_eq!(status_with(&key, &run).await, 200);
    for _ in 0..2 {
        let again = redeem(&lab.server, &exchange.nonce).await;
        assert!(again.detail(401).contains("used before"), "{}", again.text);
        assert_eq!(again.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(status_with(&key, &run).await, 401);
    let logs = lab.logs(&run).await;
    assert!(logs.contains("requested twice"), "{logs}");
}

#[tokio::test]
async fn a_nonce_is_used_once_on_all_servers_together() {
    let (lab, run, exchange) = lab_with_run().await;
    let other = lab.server.replica().await;
    let nonce = exchange.nonce.as_str();
    let (first, second) = tokio::join!(redeem(&lab.server, nonce), redeem(&other, nonce));
    let (won, lost) = if first.status == 200 {
        (first, second)
    } else {
        (second, first)
    };
    lost.detail(401);
    for server in [&lab.server, &other] {
        let key = server.with_key(&key_of(&won));
        assert_eq!(status_with(&key, &run).await, 401);
    }
}

#[tokio::test]
async fn a_nonce_read_after_the_end_of_its_run_is_worthless() {
    let (lab, run, exchange) = lab_with_run().await;
    let path = format!("{EXECUTIONS}/{run}/cancel");
    lab.client.post(&path, &Value::Null).await.json(200);
    let late = redeem(&lab.server, &exchange.nonce).await;
    assert!(late.detail(401).contains("unknown"), "{}", late.text);
}

#[tokio::test]
async fn guessed_and_foreign_secrets_give_no_key() {
    let (lab, run, exchange) = lab_with_run().await;
    let nonce = &exchange.nonce;
    let (known, secret) = nonce.rsplit_once('_').unwrap();
    let mut guessed = secret.to_owned();
    guessed.replace_range(..1, if secret.starts_with('A') { "B" } else { "A" });
    let key = lab
        .server
        .key(&labdata_domain::people::scope::Scope::ALL, |_| {})
        .await;
    for wrong in [
        format!("{known}_{guessed}"),
        nonce.replace("-1_", "-2_"),
        "ldn_".to_owned(),
        "nonsense".to_owned(),
        key,
    ] {
        let refused = redeem(&lab.server, &wrong).await;
        assert!(refused.detail(401).contains("unknown"), "{}", refused.text);
    }
    let nothing = lab.server.anonymous().request(Method::POST, "/run-key");
    send(nothing).await.detail(401);
    // A nonce is no key, and the guesses have not used it up.
    assert_eq!(status_with(&lab.server.with_key(nonce), &run).await, 401);
    key_of(&redeem(&lab.server, nonce).await);
}

#[tokio::test]
async fn another_attempt_has_another_nonce() {
    let (lab, run, first) = lab_with_run().await;
    lab.runner.lose_everything();
    let retry = lab.retry(&run).await;
    let second = exchange(&lab, &retry).await;
    assert_ne!(first.nonce, second.nonce);
    redeem(&lab.server, &first.nonce).await.detail(401);
    key_of(&redeem(&lab.server, &second.nonce).await);
}
