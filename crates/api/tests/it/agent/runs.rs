//! Runs that succeed, as a stream and without one.

use labdata_domain::people::scope::Scope::{self, Read};
use labdata_llm::Provider as Dialect;
use labdata_test_llm::Reply;
use reqwest::Method;
use serde_json::{Value, json};

use super::lab::{AgentLab, Events, RUNS, fields, names, run};
use crate::mcp::lab::call_tool;

#[tokio::test]
async fn a_stream_carries_the_events_of_the_contract() {
    let lab = AgentLab::start().await;
    lab.will_call("list_jobs", &json!({}), "There are none.");
    let events = lab.stream("Which jobs are there?").await;
    let headers = events.response.headers().clone();
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-accel-buffering"], "no");
    assert!(!headers.contains_key("content-encoding"));
    assert!(headers.contains_key("x-request-id"));

    let events = events.all().await;
    let expected = [
        "run_started",
        "usage",
        "tool_call",
        "tool_result",
        "text_delta",
        "text_delta",
        "text_delta",
        "usage",
        "result",
    ];
    assert_eq!(names(&events), expected);
    let ids: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=9).collect::<Vec<_>>());

    let data = |index: usize| &events[index].data;
    assert_eq!(fields(data(0)), ["chat_id", "model", "run_id", "type"]);
    assert_eq!(data(0)["model"], "small");
    assert_eq!(data(0)["chat_id"], Value::Null);
    assert!(data(0)["run_id"].as_str().unwrap().len() == 36);
    let call = json!({ "type": "tool_call", "tool_call_id": "call_1", "tool_name": "list_jobs",
        "input": {} });
    assert_eq!(data(2), &call);
    let output = json!({ "items": [], "next_cursor": null });
    let returned = json!({ "type": "tool_result", "tool_call_id": "call_1",
        "tool_name": "list_jobs", "output": output, "is_error": false, "truncated": false });
    assert_eq!(data(3), &returned);
    assert_eq!(data(4)["delta"], "There ");
    let usage = json!({ "type": "usage", "input_tokens": 24, "output_tokens": 10,
        "total_tokens": 34 });
    assert_eq!(data(7), &usage);
    let result = json!({
        "output": "There are none.",
        "model": "small",
        "tool_calls": [{ "tool_call_id": "call_1", "tool_name": "list_jobs", "input": {},
            "output": output, "is_error": false }],
        "usage": { "input_tokens": 24, "output_tokens": 10, "total_tokens": 34 },
        "chat_id": null,
    });
    assert_eq!(data(8), &json!({ "type": "result", "result": result }));
}

#[tokio::test]
async fn a_run_without_a_stream_answers_with_the_same_result() {
    let lab = AgentLab::start().await;
    lab.will_call("list_jobs", &json!({}), "There are none.");
    let mut streamed = lab.stream("Which jobs are there?").await;
    let streamed = streamed.until("result").await;
    lab.will_call("list_jobs", &json!({}), "There are none.");
    assert_eq!(lab.run("Which jobs are there?").await, streamed["result"]);
}

#[tokio::test]
async fn a_request_chooses_one_of_the_models() {
    let lab = AgentLab::start().await;
    for (model, used) in [
        (json!("large"), "large"),
        (json!("small"), "small"),
        (Value::Null, "small"),
    ] {
        lab.provider.will(Reply::text("42"));
        let body = json!({ "prompt": "6 * 7?", "model": model, "chat_id": null, "save": null });
        let result = run(&lab.client, body).await.json(200);
        assert_eq!(result["model"], used);
        assert_eq!(result["output"], "42");
        let requests = lab.provider.requests();
        assert_eq!(requests.last().unwrap().body["model"], used);
    }
}

#[tokio::test]
async fn a_tool_gets_the_problem_of_its_arguments_and_the_model_reads_it() {
    let lab = AgentLab::start().await;
    let asked = Reply::text("").and_call("a", "query_data", "not an object");
    lab.provider.will(asked.and_call("b", "no_such_tool", "{}"));
    lab.provider.will(Reply::text("I cannot."));
    let result = lab.run("Count").await;
    let calls = result["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["input"], "not an object");
    assert_eq!(calls[0]["is_error"], true);
    let output = calls[0]["output"].as_str().unwrap();
    assert!(output.contains("not a JSON object"), "{output}");
    let output = calls[1]["output"].as_str().unwrap();
    assert!(output.contains("there is no tool"), "{output}");
    assert_eq!(result["output"], "I cannot.");
}

#[tokio::test]
async fn a_long_output_is_a_text_and_says_that_it_is_truncated() {
    let lab = AgentLab::start().await;
    let query = json!({ "query": "SELECT repeat('x', 100000) AS long" });
    lab.will_call("query_data", &query, "Long.");
    let mut events = lab.stream("How long?").await;
    let returned = events.until("tool_result").await;
    assert_eq!(returned["truncated"], true);
    assert_eq!(returned["output"].as_str().unwrap().len(), 64 << 10);
    assert_eq!(events.until("result").await["result"]["output"], "Long.");
    let read = lab.provider.requests()[1].body["messages"].to_string();
    assert!(read.contains("[The output is cut off: 16384 of 100"));
    assert!(read.len() < 20 << 10, "{}", read.len());
}

#[tokio::test]
async fn a_reader_is_offered_no_tool_that_writes_and_cannot_force_one() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    let write = json!({ "tables": [{ "table": "sample", "rows": [{ "name": "x" }] }] });
    lab.will_call("write_data", &write, "It is not allowed.");
    let reader = lab.on.server.client(&[Read]).await;
    let events = Events::of(&reader, json!({ "prompt": "Write" })).await;
    let events = events.all().await;
    let returned = events.iter().find(|event| event.name == "tool_result");
    let returned = &returned.unwrap().data;
    assert_eq!(returned["is_error"], true);
    let output = returned["output"].as_str().unwrap();
    assert!(output.contains("lacks the write scope"), "{output}");
    let offered = lab.provider.requests()[0].body["tools"].clone();
    let offered: Vec<&str> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    for tool in [
        "write_data",
        "create_job",
        "update_job",
        "run_job",
        "send_notification",
    ] {
        assert!(!offered.contains(&tool), "{tool}");
    }
    assert!(offered.contains(&"query_data"));
    assert!(lab.on.rows("sample", json!({})).await.is_empty());
    let executions = lab.client.get("/api/v1/job-executions").await.json(200);
    assert_eq!(executions, json!([]));
}

#[tokio::test]
async fn the_writes_of_a_run_are_one_execution_that_is_reverted_at_once() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    for name in ["a", "b"] {
        let write = json!({ "tables": [{ "table": "sample", "rows": [{ "name": name }] }] });
        lab.provider.will(Reply::call(name, "write_data", &write));
    }
    lab.provider.will(Reply::text("Both are written."));
    let result = lab.run("Write a and b").await;
    let calls = result["tool_calls"].as_array().unwrap();
    let execution = &calls[0]["output"]["job_execution_id"];
    assert_eq!(&calls[1]["output"]["job_execution_id"], execution);
    assert_eq!(lab.on.rows("sample", json!({})).await.len(), 2);
    let path = format!("/api/v1/job-executions/{}", execution.as_str().unwrap());
    let closed = lab.client.get(&path).await.json(200);
    assert_eq!(closed["status"], "completed");
    let reverted = lab
        .on
        .revert(&json!({ "job_execution_id": execution }))
        .await;
    assert_eq!(reverted["deleted_count"], 2);
    assert!(lab.on.rows("sample", json!({})).await.is_empty());
}

#[tokio::test]
async fn a_run_that_reaches_a_limit_ends_with_what_it_has() {
    let lab = AgentLab::of(Dialect::OpenAi, |mut agent| {
        agent.limits.steps = 2;
        agent
    })
    .await;
    lab.provider
        .otherwise(|_| Reply::text("Looking.").and_call("a", "list_jobs", "{}"));
    let events = lab.stream("Loop").await.all().await;
    let result = &events.last().unwrap().data["result"];
    let output = result["output"].as_str().unwrap();
    assert!(
        output.starts_with("Looking.") && output.contains("after 2 steps, the limit"),
        "{output}"
    );
    assert_eq!(lab.provider.requests().len(), 2);
}

#[tokio::test]
async fn events_are_never_compressed() {
    let lab = AgentLab::start().await;
    lab.provider.will(Reply::text("Hello."));
    let body = json!({ "prompt": "x", "stream": true });
    let request = lab.client.request(Method::POST, RUNS).json(&body);
    let request = request.header("accept-encoding", "gzip, br, zstd, deflate");
    let response = request.send().await.unwrap();
    assert!(!response.headers().contains_key("content-encoding"));
    let text = response.text().await.unwrap();
    assert!(
        text.starts_with("event: run_started\nid: 1\ndata: {"),
        "{text}"
    );
}

#[tokio::test]
async fn a_script_that_asks_the_agent_writes_under_its_own_execution() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    let opened = lab.client.post("/api/v1/job-executions", &json!({})).await;
    let own = opened.json(200)["job_execution_id"].take();
    let id = own.as_str().unwrap().parse().unwrap();
    let key = lab
        .on
        .server
        .key(&Scope::ALL, |key| key.execution = Some(id));
    let script = lab.on.server.with_key(&key.await);
    let write =
        |name: &str| json!({ "tables": [{ "table": "sample", "rows": [{ "name": name }] }] });
    let job = json!({ "name": "more", "code": "print(1)" });
    let asked = Reply::call("a", "write_data", &write("of a run"));
    lab.provider
        .will(asked.and_call("b", "create_job", &job.to_string()));
    lab.provider.will(Reply::text("Written."));
    let result = run(&script, json!({ "prompt": "Write" })).await.json(200);
    let calls = result["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["output"]["job_execution_id"], own);
    let refusal = calls[1]["output"].as_str().unwrap();
    assert!(refusal.contains("its own run"), "{refusal}");

    let (text, _) = call_tool(&script, "write_data", write("of an assistant")).await;
    let output: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(output["job_execution_id"], own);
    let executions = lab.client.get("/api/v1/job-executions").await.json(200);
    let executions = executions.as_array().unwrap();
    assert_eq!(
        (executions.len(), &executions[0]["status"]),
        (1, &json!("running"))
    );
    let reverted = json!({ "job_execution_id": own });
    assert_eq!(lab.on.revert(&reverted).await["deleted_count"], 2);
}
