//! Everything that a provider can get wrong, over HTTP.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use futures::future::join_all;
use labdata_application::agent::{
    Agent,
    tools::{Tool, ToolContext, ToolRegistry},
};
use labdata_domain::agent::{ToolInput, ToolOutput};
use labdata_llm::Provider as Dialect;
use labdata_ports::agent::ToolDefinition;
use labdata_test_llm::{Fault, Reply, Request};
use serde_json::{Map, json};

use super::lab::{AgentLab, KEY, run};

/// A tool that counts its calls.
struct Counting(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Counting {
    fn name(&self) -> &'static str {
        "count"
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: "Counts.".to_owned(),
            schema: Map::from_iter([("type".to_owned(), "object".into())]),
        }
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, _context: &ToolContext<'_>, _input: &ToolInput) -> ToolOutput {
        self.0.fetch_add(1, Ordering::Relaxed);
        ToolOutput::result("{}".to_owned())
    }
}

/// The fault that a prompt names, in its first answer. The second answer is good.
fn faulty(request: &Request) -> Reply {
    let body = request.body.to_string();
    if body.contains("\"tool_result\"") || body.contains("\"role\":\"tool\"") {
        return Reply::text("Done.");
    }
    let fault = Fault::ALL
        .into_iter()
        .find(|(name, _)| body.contains(&format!("fault:{name};")));
    let calls = Reply::text("I count. ")
        .and_call("a", "count", "{}")
        .and_call("b", "count", "{}");
    calls.with_fault(fault.unwrap().1)
}

/// True if the answer is good in spite of the fault.
fn is_harmless(fault: Fault) -> bool {
    matches!(fault, Fault::IndexFromOne | Fault::DuplicateCalls)
}

async fn survives_every_fault(dialect: Dialect) {
    let counter = Arc::new(AtomicUsize::new(0));
    let tool = Arc::new(Counting(Arc::clone(&counter)));
    let lab = AgentLab::of(dialect, |mut agent: Agent| {
        agent.tools = ToolRegistry::new(vec![tool]);
        agent.limits.runs_per_organization = 100;
        agent
    })
    .await;
    lab.provider.otherwise(faulty);
    let runs = Fault::ALL.into_iter().map(async |(name, fault)| {
        let prompt = format!("fault:{name};");
        let events = async { lab.stream(&prompt).await.all().await };
        let plain = run(&lab.client, json!({ "prompt": prompt }));
        let (mut events, plain) = tokio::join!(events, plain);
        let last = events.pop().unwrap();
        if is_harmless(fault) {
            let result = plain.json(200);
            assert_eq!(last.name, "result", "{name}: {}", last.data);
            assert_eq!(last.data["result"], result, "{name}");
            assert_eq!(result["output"], "Done.", "{name}");
            let calls = result["tool_calls"].as_array().unwrap();
            assert_eq!(calls.len(), 2, "{name}");
            return;
        }
        let detail = plain.detail(502);
        assert_eq!(last.name, "error", "{name}: {}", last.data);
        assert_eq!(last.data["status"], 502, "{name}");
        assert_eq!(last.data["error"], detail, "{name}");
        assert!(!detail.contains(KEY), "{name}: {detail}");
        let made = events.iter().filter(|event| event.name == "tool_call");
        assert_eq!(made.count(), 0, "{name}");
    });
    join_all(runs).await;
    let harmless = Fault::ALL.iter().filter(|(_, fault)| is_harmless(*fault));
    let expected = 2 * 2 * harmless.count();
    assert_eq!(
        counter.load(Ordering::Relaxed),
        expected,
        "each call is made once"
    );
    lab.provider.idle().await;
    lab.provider.will(Reply::text("Good."));
    assert_eq!(lab.run("x").await["output"], "Good.");
}

#[tokio::test]
async fn every_fault_of_chat_completions_ends_the_run_in_order() {
    survives_every_fault(Dialect::OpenAi).await;
}

#[tokio::test]
async fn every_fault_of_messages_ends_the_run_in_order() {
    survives_every_fault(Dialect::Anthropic).await;
}

#[tokio::test]
async fn a_request_is_repeated_before_the_first_token_only() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let lab = AgentLab::of(dialect, |agent| agent).await;
        let busy = || Reply::error(429, "slow down").with_header("retry-after", "0");
        lab.provider.will(busy());
        lab.provider.will(busy());
        lab.provider.will(Reply::text("Here."));
        assert_eq!(lab.run("x").await["output"], "Here.");
        for _ in 0..3 {
            lab.provider.will(busy());
        }
        let detail = run(&lab.client, json!({ "prompt": "x" })).await.detail(502);
        assert_eq!(detail, "the provider of the model answered 429: slow down");
        lab.provider
            .will(Reply::error(429, "slow down").with_header("retry-after", "60"));
        assert_eq!(run(&lab.client, json!({ "prompt": "x" })).await.status, 502);
        lab.provider
            .will(Reply::error(500, "oops").with_header("retry-after", "0"));
        lab.provider.will(Reply::text("Again."));
        assert_eq!(lab.run("x").await["output"], "Again.");
        assert_eq!(lab.provider.requests().len(), 3 + 3 + 1 + 2);
    }
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_the_same_answer() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let lab = AgentLab::of(dialect, |agent| agent).await;
        let call = Reply::text("Ä ").and_call("a", "list_jobs", "{}");
        lab.provider.will(call.with_split(1));
        lab.provider
            .will(Reply::text("Keine Läufe 🧪.").with_split(1));
        let events = lab.stream("x").await.all().await;
        let text: String = events
            .iter()
            .filter_map(|event| event.data["delta"].as_str())
            .collect();
        assert_eq!(text, "Ä Keine Läufe 🧪.");
        let result = &events.last().unwrap().data["result"];
        assert_eq!(result["output"], "Keine Läufe 🧪.");
        assert_eq!(result["tool_calls"].as_array().unwrap().len(), 1);
    }
}
