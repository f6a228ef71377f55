//! Runs that are cancelled, and clients that leave.

use std::time::Duration;

use labdata_domain::people::scope::Scope::Read;
use labdata_llm::Provider as Dialect;
use labdata_test_llm::{Fault, Reply};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::lab::{AgentLab, CHATS, Events, RUNS, run};
use crate::people::Access;

/// Longest wait for something that is to happen; without it a test would hang instead of fail.
const LONG: Duration = Duration::from_mins(1);

/// A query that takes longer than queries may.
const SLOW: &str = "SELECT count(*) FROM generate_series(1, 2000000000) AS s (n)";

/// Number of statements that execute that query.
async fn slow_queries(lab: &AgentLab) -> i64 {
    let behind = lab.on.look_behind().await;
    let query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
        AND datname = current_database() AND query LIKE '%2000000000%' AND query NOT LIKE '%pg_stat%'";
    behind.query_one(query, &[]).await.unwrap().get(0)
}

/// Waits until a chat is saved; returns it.
async fn saved_chat(lab: &AgentLab) -> Value {
    loop {
        let chats = lab.client.get(CHATS).await.json(200);
        if let Some(chat) = chats.as_array().unwrap().first() {
            let path = format!("{CHATS}/{}", chat["id"].as_str().unwrap());
            return lab.client.get(&path).await.json(200);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the provider has a request.
async fn asked(lab: &AgentLab) {
    while lab.provider.requests().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_run_and_the_query_of_its_tool() {
    let lab = AgentLab::start().await;
    lab.will_call("query_data", &json!({ "query": SLOW }), "Many.");
    let body = json!({ "prompt": "Count", "save": true });
    let mut events = Events::of(&lab.client, body).await;
    events.until("tool_call").await;
    while slow_queries(&lab).await == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    drop(events);
    let chat = timeout(LONG, saved_chat(&lab)).await.unwrap();
    let call = &chat["messages"][1]["tool_calls"][0];
    let output = call["output"].as_str().unwrap();
    assert!(
        output.starts_with("the run was cancelled during this call"),
        "{output}"
    );
    let end = chat["messages"][2]["content"].as_str().unwrap();
    assert!(end.contains("The run was cancelled"), "{end}");
    while slow_queries(&lab).await > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        lab.provider.requests().len(),
        1,
        "the model is not asked again"
    );
}

#[tokio::test]
async fn a_client_that_leaves_closes_the_connection_to_the_provider() {
    let lab = AgentLab::patient().await;
    for fault in [Fault::SilentEnd, Fault::SilentBody, Fault::Silence] {
        lab.provider.will(Reply::text("I think").with_fault(fault));
        let mut events = lab.stream("x").await;
        events.until("run_started").await;
        asked(&lab).await;
        drop(events);
        timeout(LONG, lab.provider.idle()).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_leaves_without_a_stream_cancels_as_well() {
    let lab = AgentLab::patient().await;
    let stalled = Reply::text("I think").with_fault(Fault::SilentEnd);
    lab.provider.will(stalled);
    let client = lab.client.clone();
    let waiting = tokio::spawn(async move {
        let body = json!({ "prompt": "x", "save": true });
        run(&client, body).await
    });
    asked(&lab).await;
    waiting.abort();
    timeout(LONG, lab.provider.idle()).await.unwrap();
    let chat = timeout(LONG, saved_chat(&lab)).await.unwrap();
    let end = chat["messages"][1]["content"].as_str().unwrap();
    assert!(end.contains("The run was cancelled"), "{end}");
}

#[tokio::test]
async fn a_run_is_cancelled_on_any_server_and_answers_with_what_it_has() {
    let lab = AgentLab::patient().await;
    let replica = lab.on.server.replica().await;
    let here = lab.on.server.client(&[Read]).await;
    let elsewhere = replica.client(&[Read]).await;
    for client in [here, elsewhere] {
        let stalled = Reply::text("I think").with_fault(Fault::SilentEnd);
        lab.provider.will(stalled);
        let mut events = lab.stream("x").await;
        let started = events.until("run_started").await;
        events.until("text_delta").await;
        let path = format!("{RUNS}/{}/cancel", started["run_id"].as_str().unwrap());
        let reply = client.post(&path, &json!({})).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        let result = timeout(LONG, events.until("result")).await.unwrap();
        let output = result["result"]["output"].as_str().unwrap();
        assert!(
            output.starts_with("I think\n\n(The run was cancelled."),
            "{output}"
        );
        timeout(LONG, lab.provider.idle()).await.unwrap();
        assert_eq!(
            client.post(&path, &json!({})).await.detail(404),
            "agent run not found"
        );
    }
}

#[tokio::test]
async fn a_run_ends_when_its_caller_loses_access() {
    let lab = AgentLab::patient().await;
    for access in [
        Access::by_key(&lab.on.server).await,
        Access::by_user(&lab.on.server).await,
    ] {
        let stalled = Reply::text("I think").with_fault(Fault::SilentEnd);
        lab.provider.will(stalled);
        let mut events = Events::of(&access.client, json!({ "prompt": "x" })).await;
        events.until("text_delta").await;
        access.end().await;
        let result = timeout(LONG, events.until("result")).await.unwrap();
        let output = result["result"]["output"].as_str().unwrap();
        assert!(output.contains("The run was cancelled"), "{output}");
        timeout(LONG, lab.provider.idle()).await.unwrap();
    }
}

#[tokio::test]
async fn only_its_user_cancels_a_run() {
    let lab = AgentLab::patient().await;
    lab.provider
        .will(Reply::text("I think").with_fault(Fault::SilentEnd));
    let mut events = lab.stream("x").await;
    let started = events.until("run_started").await;
    let path = format!("{RUNS}/{}/cancel", started["run_id"].as_str().unwrap());
    for other in [
        lab.on.server.colleague().await,
        lab.on.server.stranger().await,
    ] {
        assert_eq!(other.post(&path, &json!({})).await.status, 404);
    }
    let unknown = format!("{RUNS}/x/cancel");
    assert_eq!(lab.client.post(&unknown, &json!({})).await.status, 404);
    assert_eq!(lab.client.get(&path).await.status, 405);
    assert_eq!(lab.client.post(&path, &json!({})).await.status, 204);
    timeout(LONG, events.until("result")).await.unwrap();
}

#[tokio::test]
async fn a_silent_run_sends_signs_of_life() {
    let lab = AgentLab::of(Dialect::OpenAi, |agent| agent).await;
    let slow = Reply::text("a b").with_pace(Duration::from_secs(1));
    lab.provider.will(slow);
    let mut events = lab.stream("x").await;
    events.until("result").await;
    assert!(events.pings >= 1, "the reply takes 7 s");
}

#[tokio::test]
async fn the_writes_of_a_cancelled_run_stay_under_a_cancelled_execution() {
    let lab = AgentLab::patient().await;
    lab.define_sample().await;
    let write = json!({ "tables": [{ "table": "sample", "rows": [{ "name": "a" }] }] });
    lab.provider.will(Reply::call("a", "write_data", &write));
    lab.provider
        .will(Reply::text("Now").with_fault(Fault::SilentEnd));
    let mut events = lab.stream("x").await;
    let written = events.until("tool_result").await["output"].clone();
    drop(events);
    let path = format!(
        "/api/v1/job-executions/{}",
        written["job_execution_id"].as_str().unwrap()
    );
    let ended = async {
        loop {
            let execution = lab.client.get(&path).await.json(200);
            if execution["status"] != "running" {
                break execution;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = timeout(LONG, ended).await.unwrap();
    assert_eq!(ended["status"], "cancelled");
    assert_eq!(lab.on.rows("sample", json!({})).await.len(), 1);
    assert_eq!(lab.on.revert(&written).await["deleted_count"], 1);
}
