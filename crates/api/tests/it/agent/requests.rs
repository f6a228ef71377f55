//! Requests that are refused, and providers that are not set up.

use std::time::Duration;

use labdata_domain::people::scope::Scope::{Read, Write};
use labdata_llm::Provider as Dialect;
use labdata_test_llm::Reply;
use reqwest::Method;
use serde_json::{Value, json};

use super::lab::{AgentLab, CHATS, Events, KEY, RUNS, call, names, run};
use crate::server::TestServer;

const NO_CHAT: &str = "0191d5a4-0000-7000-8000-000000000000";

#[tokio::test]
async fn a_body_of_another_shape_has_every_problem() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    let problem = |kind: &str, place: &str| (kind.to_owned(), place.to_owned());
    let reply = client.post(RUNS, &json!({})).await;
    let expected = [
        problem("missing", "body.prompt"),
        problem("missing", "body.stream"),
    ];
    assert_eq!(reply.problems(), expected);
    let body = json!({ "prompt": 1, "stream": "perhaps", "model": 2, "chat_id": "x", "save": [] });
    let expected = [
        problem("string_type", "body.prompt"),
        problem("bool_parsing", "body.stream"),
        problem("string_type", "body.model"),
        problem("uuid_parsing", "body.chat_id"),
        problem("bool_type", "body.save"),
    ];
    assert_eq!(client.post(RUNS, &body).await.problems(), expected);
    for (prompt, kind) in [
        (String::new(), "string_too_short"),
        ("x".repeat(40_000), "string_too_long"),
    ] {
        let reply = run(&client, json!({ "prompt": prompt })).await;
        assert_eq!(reply.problems(), [problem(kind, "body.prompt")]);
    }
    let reply = client.post_raw(RUNS, "{").await;
    assert_eq!(reply.problems()[0].0, "json_invalid");
    let null = json!({ "prompt": "x", "stream": null });
    assert_eq!(client.post(RUNS, &null).await.status, 422);
    let text = client.request(Method::POST, RUNS).body("prompt");
    assert_eq!(crate::server::send(text).await.status, 415);
}

#[tokio::test]
async fn a_model_or_chat_that_is_not_there_is_refused_before_the_stream() {
    let lab = AgentLab::start().await;
    for stream in [true, false] {
        let body = json!({ "prompt": "x", "stream": stream, "model": "huge" });
        let detail = lab.client.post(RUNS, &body).await.detail(400);
        assert_eq!(
            detail,
            "\"huge\" is not a model of this platform; it has small, large"
        );
        let body = json!({ "prompt": "x", "stream": stream, "chat_id": NO_CHAT });
        let detail = lab.client.post(RUNS, &body).await.detail(404);
        assert_eq!(detail, "chat not found");
        let body = json!({ "prompt": " \n", "stream": stream });
        assert_eq!(
            lab.client.post(RUNS, &body).await.detail(400),
            "the prompt is empty"
        );
    }
    assert_eq!(lab.provider.requests().len(), 0);
}

#[tokio::test]
async fn an_agent_that_is_not_set_up_answers_502_and_names_the_setting() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    for stream in [true, false] {
        let body = json!({ "prompt": "x", "stream": stream });
        let detail = client.post(RUNS, &body).await.detail(502);
        assert_eq!(
            detail,
            "the agent is not set up: the operator has to set LABDATA_LLM_PROVIDER"
        );
    }
    let lab = AgentLab::of(Dialect::OpenAi, |mut agent| {
        agent.models = labdata_domain::agent::ModelChoice::default();
        agent
    })
    .await;
    let detail = run(&lab.client, json!({ "prompt": "x" })).await.detail(502);
    assert!(detail.contains("LABDATA_LLM_MODEL"), "{detail}");
    // Also for a run that names a model, and a client knows it before it asks.
    let named = json!({ "prompt": "x", "model": "large" });
    assert_eq!(run(&lab.client, named).await.detail(502), detail);
    let me = lab.client.get("/api/v1/me").await.json(200);
    let missing = json!([{ "feature": "agent", "detail": detail }]);
    assert_eq!(me["missing_features"], missing);
    let lab = AgentLab::start().await;
    let me = lab.client.get("/api/v1/me").await.json(200);
    assert_eq!(me["missing_features"], json!([]));
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_502_without_its_key() {
    let lab = AgentLab::start().await;
    let refusal = || Reply::error(401, &format!("wrong key {KEY}"));
    let expected = "the provider of the model answered 401: wrong key …";
    lab.provider.will(refusal());
    let detail = run(&lab.client, json!({ "prompt": "x" })).await.detail(502);
    assert_eq!(detail, expected);
    lab.provider.will(refusal());
    let events = lab.stream("x").await.all().await;
    assert_eq!(names(&events), ["run_started", "error"]);
    let error = json!({ "type": "error", "error": expected, "status": 502 });
    assert_eq!(events[1].data, error);
}

#[tokio::test]
async fn a_run_needs_the_read_scope() {
    let lab = AgentLab::start().await;
    let writer = lab.on.server.client(&[Write]).await;
    let detail = run(&writer, json!({ "prompt": "x" })).await.detail(403);
    assert_eq!(detail, "this API key lacks the read scope");
}

#[tokio::test]
async fn other_methods_are_answered_as_everywhere() {
    let lab = AgentLab::start().await;
    let client = &lab.client;
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::DELETE] {
        let reply = call(client, method, RUNS).await;
        assert_eq!(reply.status, 405);
        assert_eq!(reply.header("allow"), Some("POST"));
    }
    assert_eq!(call(client, Method::HEAD, CHATS).await.status, 200);
    assert_eq!(call(client, Method::POST, CHATS).await.status, 405);
    let chat = format!("{CHATS}/{NO_CHAT}");
    for id in [NO_CHAT, "x"] {
        let path = format!("{CHATS}/{id}");
        assert_eq!(client.get(&path).await.detail(404), "chat not found");
        assert_eq!(client.delete(&path).await.detail(404), "chat not found");
    }
    assert_eq!(call(client, Method::PATCH, &chat).await.status, 405);
}

#[tokio::test]
async fn a_fifth_run_of_an_organization_waits_for_its_turn() {
    let lab = AgentLab::start().await;
    lab.provider
        .otherwise(|_| Reply::text("1 2 3 4 5 6 7 8 9").with_pace(Duration::from_millis(300)));
    let mut runs = Vec::new();
    for _ in 0..4 {
        let mut events = lab.stream("Count").await;
        events.until("text_delta").await;
        runs.push(events);
    }
    for stream in [true, false] {
        let body = json!({ "prompt": "Count", "stream": stream });
        let reply = lab.client.post(RUNS, &body).await;
        let detail = reply.detail(429);
        assert!(
            detail.starts_with("4 agent runs of this organization"),
            "{detail}"
        );
        assert!(reply.header("retry-after").is_some());
    }
    let stranger = lab.on.server.stranger().await;
    let mut others = Events::of(&stranger, json!({ "prompt": "Count" })).await;
    others.until("text_delta").await;
    for mut events in runs {
        let result = events.until("result").await;
        assert_eq!(result["result"]["output"], "1 2 3 4 5 6 7 8 9");
    }
    let result: Value = lab.run("Count").await;
    assert_eq!(result["output"], "1 2 3 4 5 6 7 8 9");
}

#[tokio::test]
async fn unknown_fields_and_an_idempotency_key_change_nothing() {
    let lab = AgentLab::start().await;
    for output in ["One.", "Two."] {
        lab.provider.will(Reply::text(output));
        let body = json!({ "prompt": "x", "stream": false, "temperature": 2, "tools": [] });
        let request = lab.client.request(Method::POST, RUNS);
        let request = request.header("idempotency-key", "the same").json(&body);
        let reply = crate::server::send(request).await;
        assert_eq!(reply.header("idempotent-replayed"), None);
        assert_eq!(reply.json(200)["output"], output);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let lab = AgentLab::start().await;
    let body = format!(
        "{{\"prompt\": \"{}\", \"stream\": true}}",
        "x".repeat(4_718_592)
    );
    lab.client.post_raw(RUNS, body.clone()).await.detail(413);
    let pieces = futures::stream::iter([Ok::<_, std::io::Error>(body)]);
    let unannounced = reqwest::Body::wrap_stream(pieces);
    lab.client.post_raw(RUNS, unannounced).await.detail(413);
    assert_eq!(lab.provider.requests().len(), 0);
}

#[tokio::test]
async fn a_key_that_is_revoked_during_a_run_writes_nothing_more() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    let created = json!({ "name": "agent", "scopes": ["read", "write"] });
    let created = lab
        .client
        .post("/api/v1/api-keys", &created)
        .await
        .json(200);
    let client = lab.on.server.with_key(created["key"].as_str().unwrap());
    let write = json!({ "tables": [{ "table": "sample", "rows": [{ "name": "late" }] }] });
    let slow = Reply::text("I write the row").with_pace(Duration::from_millis(200));
    lab.provider
        .will(slow.and_call("a", "write_data", &write.to_string()));
    lab.provider.will(Reply::text("It was refused."));
    let mut events = Events::of(&client, json!({ "prompt": "Write" })).await;
    events.until("text_delta").await;
    let path = format!("/api/v1/api-keys/{}", created["id"].as_str().unwrap());
    assert_eq!(lab.client.delete(&path).await.status, 204);
    // The run is cancelled within a second; a call that comes before is refused.
    let events = events.all().await;
    let mut returned = events.iter().filter(|event| event.name == "tool_result");
    assert!(returned.all(|event| event.data["is_error"] == true));
    assert_eq!(events.last().unwrap().name, "result");
    assert!(lab.on.rows("sample", json!({})).await.is_empty());
}
