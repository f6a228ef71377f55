//! Contract of [`LanguageModel`].

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use labdata_domain::agent::{
    BrokenStream, Message, ModelFailure, ModelResponse, RequestedCall, StopReason, ToolCall,
    ToolInput, Usage,
};
use labdata_ports::agent::{LanguageModel, ModelRequest, ResponsePart, ToolDefinition};
use serde_json::{Map, Value, json};

use crate::{Itself, Subject};

/// A harness whose provider does as it is reported.
#[async_trait]
pub trait Scripted: Subject<dyn LanguageModel> {
    /// The provider gives this response to the next request.
    async fn will_respond(&self, response: ModelResponse);

    /// The provider refuses all further requests with 429 and `Retry-After: 30`.
    async fn will_refuse(&self);

    /// The provider sends this text and breaks the response off before its end.
    async fn will_break_off(&self, text: &str);
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let schema = json!({
        "type": "object",
        "properties": { "query": { "type": "string" } },
        "required": ["query"],
    });
    ModelRequest {
        model: "stub".to_owned(),
        instructions: "Answer.".to_owned(),
        messages,
        tools: Arc::new([ToolDefinition {
            name: "query_data".to_owned(),
            description: "Runs a query.".to_owned(),
            schema: object(schema),
        }]),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn prompt() -> ModelRequest {
    request(vec![Message::User("How many?".to_owned())])
}

async fn parts<H: Scripted>(
    harness: &H,
    request: &ModelRequest,
) -> Result<Vec<Result<ResponsePart, ModelFailure>>, ModelFailure> {
    let stream = harness.subject().response(request).await?;
    Ok(stream.collect().await)
}

/// Reads a response that succeeds; returns its texts and its end.
async fn read<H: Scripted>(harness: &H, request: &ModelRequest) -> (String, ModelResponse) {
    let mut parts = parts(harness, request).await.unwrap();
    let end = match parts.pop() {
        Some(Ok(ResponsePart::End(end))) => end,
        other => panic!("an answer ends with its end, not with {other:?}"),
    };
    let texts = parts.into_iter().map(|part| match part {
        Ok(ResponsePart::Text(text)) => {
            assert!(!text.is_empty(), "a text has characters");
            text
        }
        other => panic!("before the end come texts, not {other:?}"),
    });
    (texts.collect(), end)
}

fn usage() -> Usage {
    Usage {
        input_tokens: Some(12),
        output_tokens: Some(5),
        total_tokens: Some(17),
    }
}

crate::suite!(
    use agent::language_model;

    /// The texts in their order are the text of the whole response, for any characters.
    async fn the_texts_of_an_answer_add_up_to_its_end(harness: &Itself<impl Scripted>) {
        let response = ModelResponse {
            text: "Es sind 42 µL – \"viel\"\n\n| a | b |\n\u{1f9ea}".to_owned(),
            tool_calls: Vec::new(),
            usage: usage(),
            stop: StopReason::Complete,
        };
        harness.will_respond(response.clone()).await;
        let (text, end) = read(&**harness, &prompt()).await;
        assert_eq!(text, response.text);
        assert_eq!(end, response);
    }

    /// Tool calls keep their order, ids and arguments.
    async fn tool_calls_and_usage_come_with_the_end(harness: &Itself<impl Scripted>) {
        let call = |id: &str, arguments: Value| RequestedCall {
            id: id.to_owned(),
            name: "query_data".to_owned(),
            arguments: arguments.to_string(),
            provider_data: None,
        };
        let response = ModelResponse {
            text: "Let me look.".to_owned(),
            tool_calls: vec![
                call("call_a", json!({ "query": "SELECT 'ä\"\\n'" })),
                call("call_b", json!({ "query": "SELECT 2" })),
            ],
            usage: usage(),
            stop: StopReason::Complete,
        };
        harness.will_respond(response.clone()).await;
        let (_, end) = read(&**harness, &prompt()).await;
        assert_eq!(end, response);
    }

    /// A conversation with tool calls, failed ones among them, is a request like any other.
    async fn an_answer_continues_tool_results(harness: &Itself<impl Scripted>) {
        let call = |id: &str, arguments: &str| ToolCall {
            id: id.to_owned(),
            name: "query_data".to_owned(),
            input: ToolInput::parse(arguments),
            provider_data: None,
        };
        let result = |id: &str, is_error| Message::ToolResult {
            call_id: id.to_owned(),
            output: "[[1]]".to_owned(),
            is_error,
        };
        let conversation = request(vec![
            Message::User("How many?".to_owned()),
            Message::Assistant {
                text: String::new(),
                tool_calls: vec![call("a", "{\"query\": \"SELECT 1\"}"), call("b", "no JSON")],
            },
            result("a", false),
            result("b", true),
        ]);
        let response = ModelResponse {
            text: "One.".to_owned(),
            usage: usage(),
            ..ModelResponse::default()
        };
        harness.will_respond(response.clone()).await;
        let (text, _) = read(&**harness, &conversation).await;
        assert_eq!(text, response.text);
    }

    /// A refusal is known before any part of a response.
    async fn a_refusal_has_status_and_time_to_wait(harness: &Itself<impl Scripted>) {
        harness.will_refuse().await;
        match parts(&**harness, &prompt()).await {
            Err(ModelFailure::Refused {
                status: 429,
                retry_after: Some(30),
                message,
            }) => assert!(!message.is_empty()),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    /// Parts that arrived before are passed on; the error is the last part.
    async fn an_answer_that_breaks_off_ends_with_an_error(harness: &Itself<impl Scripted>) {
        harness.will_break_off("The answer is").await;
        let mut parts = parts(&**harness, &prompt()).await.unwrap();
        match parts.pop() {
            Some(Err(ModelFailure::Broken(BrokenStream::NoEnd | BrokenStream::Connection))) => {}
            other => panic!("expected a broken answer, got {other:?}"),
        }
        let texts = parts.into_iter().map(|part| match part {
            Ok(ResponsePart::Text(text)) => text,
            other => panic!("before the error come texts, not {other:?}"),
        });
        assert_eq!(texts.collect::<String>(), "The answer is");
    }
);
