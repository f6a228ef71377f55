//! Used tokens, and the budget of an organization.

use labdata_domain::people::scope::Scope::Read;
use labdata_llm::Provider as Dialect;
use labdata_test_llm::{Reply, Usage};
use serde_json::json;

use super::lab::{AgentLab, run};

const USAGE: &str = "/api/v1/agent/usage";

fn takes(input: u64, output: u64, reply: Reply) -> Reply {
    Reply {
        usage: Usage { input, output },
        ..reply
    }
}

#[tokio::test]
async fn a_run_that_uses_the_budget_up_ends_and_the_next_one_is_429_on_any_server() {
    let lab = AgentLab::of(Dialect::OpenAi, |mut agent| {
        agent.limits.monthly_tokens = Some(100);
        agent
    })
    .await;
    let replica = lab.on.server.replica().await;
    let elsewhere = replica.client(&[Read]).await;
    lab.provider.will(takes(50, 20, Reply::text("One.")));
    let result = run(&elsewhere, json!({ "prompt": "x" })).await.json(200);
    assert_eq!(result["usage"]["total_tokens"], 70);

    let call = Reply::call("a", "list_jobs", &json!({}));
    lab.provider.will(takes(30, 10, call));
    let result = lab.run("x").await;
    let output = result["output"].as_str().unwrap();
    assert!(
        output.contains("has used its 100 tokens of this month"),
        "{output}"
    );
    assert_eq!(result["tool_calls"][0]["is_error"], true);

    for client in [&lab.client, &elsewhere] {
        for stream in [true, false] {
            let body = json!({ "prompt": "x", "stream": stream });
            let reply = client.post(super::lab::RUNS, &body).await;
            let detail = reply.detail(429);
            let start =
                "the organization has used its 100 tokens of this month; the agent runs again";
            assert!(detail.starts_with(start), "{detail}");
            let retry_after: u32 = reply.header("retry-after").unwrap().parse().unwrap();
            assert!(retry_after > 0);
        }
    }
    assert_eq!(lab.provider.requests().len(), 2);
    let usage = lab.client.get(USAGE).await.json(200);
    assert_eq!(usage["total_tokens"], 110);
    assert_eq!(usage["input_tokens"], 80);
    assert_eq!(usage["output_tokens"], 30);
    assert_eq!(usage["token_budget"], 100);

    let stranger = lab.on.server.stranger().await;
    let usage = stranger.get(USAGE).await.json(200);
    assert_eq!(usage["total_tokens"], 0);
    lab.provider.will(Reply::text("Two."));
    let reply = run(&stranger, json!({ "prompt": "x" })).await;
    assert_eq!(reply.json(200)["output"], "Two.");

    lab.on.server.clock.advance(time::Duration::days(31));
    lab.provider.will(Reply::text("Three."));
    assert_eq!(lab.run("x").await["output"], "Three.");
}

#[tokio::test]
async fn used_tokens_are_metrics() {
    let lab = AgentLab::start().await;
    let metrics = async || lab.client.get("/metrics").await.text;
    let before = metrics().await;
    assert!(
        before.contains("# TYPE labdata_agent_tokens_total counter"),
        "{before}"
    );
    assert!(
        before.contains("labdata_agent_tokens_total{kind=\"input\"} 0"),
        "{before}"
    );
    lab.will_call("list_jobs", &json!({}), "None.");
    lab.run("x").await;
    let after = metrics().await;
    assert!(
        after.contains("labdata_agent_tokens_total{kind=\"input\"} 24"),
        "{after}"
    );
    assert!(
        after.contains("labdata_agent_tokens_total{kind=\"output\"} 10"),
        "{after}"
    );
}
