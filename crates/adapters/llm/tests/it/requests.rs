//! Requests, as a provider receives them.

use std::{sync::Arc, time::Duration};

use labdata_domain::agent::{Message, ModelFailure, ToolCall, ToolInput};
use labdata_llm::{LlmClient, LlmSettings, Provider};
use labdata_ports::agent::{LanguageModel, ModelRequest, ToolDefinition};
use labdata_redacted::Secret;
use labdata_test_llm::{Reply, Request};
use serde_json::{Value, json};

use crate::server::{KEY, Server, request};

fn conversation() -> ModelRequest {
    let call = ToolCall {
        id: "a".to_owned(),
        name: "query_data".to_owned(),
        input: ToolInput::parse("{\"query\": \"SELECT 1\"}"),
        provider_data: Some(json!({ "google": { "thought_signature": "xyz" } })),
    };
    ModelRequest {
        messages: vec![
            Message::User("How many?".to_owned()),
            Message::Assistant {
                text: "Let me look.".to_owned(),
                tool_calls: vec![call],
            },
            Message::ToolResult {
                call_id: "a".to_owned(),
                output: "[[1]]".to_owned(),
                is_error: true,
            },
        ],
        tools: Arc::new([ToolDefinition {
            name: "query_data".to_owned(),
            description: "Runs a query.".to_owned(),
            schema: json!({ "type": "object" }).as_object().unwrap().clone(),
        }]),
        ..request()
    }
}

async fn received(provider: Provider) -> Request {
    let server = Server::speaking(provider).await;
    server.stub.will(Reply::text("One."));
    assert!(server.client.response(&conversation()).await.is_ok());
    server.stub.requests().remove(0)
}

#[tokio::test]
async fn a_chat_completion_is_asked_for() {
    let request = received(Provider::Gemini).await;
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let expected = json!({
        "model": "stub",
        "stream": true,
        "stream_options": { "include_usage": true },
        "messages": [
            { "role": "system", "content": "Answer." },
            { "role": "user", "content": "How many?" },
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [{
                    "id": "a",
                    "type": "function",
                    "function": { "name": "query_data", "arguments": "{\"query\":\"SELECT 1\"}" },
                    "extra_content": { "google": { "thought_signature": "xyz" } },
                }],
            },
            { "role": "tool", "tool_call_id": "a", "content": "[[1]]" },
        ],
        "tools": [{
            "type": "function",
            "function": {
                "name": "query_data",
                "description": "Runs a query.",
                "parameters": { "type": "object" },
            },
        }],
    });
    assert_eq!(request.body, expected);
}

#[tokio::test]
async fn a_message_is_asked_for() {
    let request = received(Provider::Anthropic).await;
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.headers["x-api-key"], KEY);
    assert_eq!(request.headers["anthropic-version"], "2023-06-01");
    let mut body = request.body;
    assert!(body["max_tokens"].take().is_u64());
    let expected = json!({
        "model": "stub",
        "max_tokens": Value::Null,
        "stream": true,
        "system": "Answer.",
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "How many?" }] },
            {
                "role": "assistant",
                "content": [
                    { "type": "text", "text": "Let me look." },
                    { "type": "tool_use", "id": "a", "name": "query_data", "input": { "query": "SELECT 1" } },
                ],
            },
            {
                "role": "user",
                "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "[[1]]", "is_error": true },
                ],
            },
        ],
        "tools": [{
            "name": "query_data",
            "description": "Runs a query.",
            "input_schema": { "type": "object" },
        }],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_missing_setting_is_named_before_any_request() {
    struct NoIds;
    impl labdata_ports::IdSource for NoIds {
        fn next_id(&self) -> uuid::Uuid {
            uuid::Uuid::nil()
        }

        fn fill_random(&self, _: &mut [u8]) {}
    }
    for (provider, key, missing) in [
        (None, Some(KEY), "LABDATA_LLM_PROVIDER"),
        (Some(Provider::Anthropic), None, "LABDATA_LLM_API_KEY"),
    ] {
        let settings = LlmSettings {
            provider,
            base_url: None,
            api_key: key.map(|key| Secret::new(key.to_owned())),
            timeout: Duration::from_secs(1),
        };
        let client = LlmClient::new(&settings, Arc::new(NoIds)).unwrap();
        let expected = ModelFailure::NotConfigured(missing);
        assert_eq!(client.check(), Err(expected.clone()));
        assert_eq!(client.response(&request()).await.err(), Some(expected));
    }
}
