//! A provider to try the agent by hand, without a model: `just agent-stub`.
//!
//! It looks the tables up first and then says what the tool returned. `fault:NAME` in a prompt asks for
//! a fault, `call:TOOL {…}` for a call of a tool, `say:TEXT` for a response.
#![expect(clippy::print_stdout, reason = "this is its interface")]

use std::{env, future, time::Duration};

use labdata_test_llm::{Fault, Provider, Reply, Request};
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let address = env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8089".to_owned());
    let provider = Provider::start_at(&address).await;
    provider.otherwise(reply);
    println!("Start the platform with");
    println!(
        "  LABDATA_LLM_PROVIDER=openai LABDATA_LLM_BASE_URL={} \\",
        provider.base_url()
    );
    println!("  LABDATA_LLM_API_KEY=stub LABDATA_LLM_MODEL=stub labdata serve");
    println!("LABDATA_LLM_PROVIDER=anthropic works too. Write fault:NAME in a prompt for a fault:");
    for (name, fault) in Fault::ALL {
        println!("  {name:16} {fault:?}");
    }
    println!("or call:TOOL {{\"argument\": 1}} for a call of a tool, or say:TEXT for an answer.");
    future::pending::<()>().await;
}

fn reply(request: &Request) -> Reply {
    let pace = Duration::from_millis(30);
    let (prompt, output) = last(&request.body);
    if let Some(output) = output {
        let start: String = output.chars().take(200).collect();
        let response = format!(
            "The tool returned {} bytes, which begin: {start}",
            output.len()
        );
        return Reply::text(&response).with_pace(pace);
    }
    if let Some((_, words)) = prompt.split_once("say:") {
        return Reply::text(words).with_pace(pace);
    }
    let named = prompt.split_once("fault:").map(|(_, rest)| rest.trim());
    let fault = Fault::ALL
        .into_iter()
        .find(|(name, _)| named.is_some_and(|named| named.starts_with(name)));
    let reply = match prompt.split_once("call:") {
        Some((_, call)) => {
            let (name, arguments) = call.trim().split_once(' ').unwrap_or((call.trim(), "{}"));
            Reply::text("Calling it. ").and_call("call_1", name, arguments)
        }
        None => Reply::text("I look the tables up. ").and_call(
            "call_1",
            "get_schema",
            &json!({}).to_string(),
        ),
    };
    match fault {
        Some((_, fault)) => reply.with_pace(pace).with_fault(fault),
        None => reply.with_pace(pace),
    }
}

/// The last prompt, and the output of a tool if that came after it.
fn last(body: &Value) -> (String, Option<String>) {
    let (mut prompt, mut output) = (String::new(), None);
    let messages = body.get("messages").and_then(Value::as_array);
    for message in messages.into_iter().flatten() {
        let content = message.get("content").cloned().unwrap_or_default();
        let blocks = match content {
            Value::Array(blocks) => blocks,
            other => vec![json!({ "text": other })],
        };
        for block in blocks {
            let field = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
            let is_result = field("type").as_deref() == Some("tool_result")
                || message.get("role").and_then(Value::as_str) == Some("tool");
            if is_result {
                output = field("content").or_else(|| field("text"));
            } else if message.get("role").and_then(Value::as_str) == Some("user") {
                prompt = field("text").unwrap_or_default();
                output = None;
            }
        }
    }
    (prompt, output)
}
