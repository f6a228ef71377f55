//! Chat completions, as `OpenAI` and compatible servers speak them.

use labdata_domain::agent::{BrokenStream, Message, StopReason, ToolCall, ToolInput, Usage};
use labdata_ports::agent::ModelRequest;
use serde_json::{Map, Value, json};

use super::{number, text};
use crate::{
    assembly::{Assembly, CallPart, Read},
    frames::Frame,
};

const NAME: &str = "chat completions";

/// Field of a tool call that belongs to the provider, such as Gemini's signature of a thought.
const PROVIDER_DATA: &str = "extra_content";

pub(super) fn body(request: &ModelRequest) -> Value {
    let instructions = json!({ "role": "system", "content": request.instructions });
    let messages = request.messages.iter().map(message);
    let messages: Vec<Value> = std::iter::once(instructions).chain(messages).collect();
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        // Without this a stream reports no usage, and tokens would have to be estimated.
        "stream_options": { "include_usage": true },
    });
    if let (false, Some(body)) = (request.tools.is_empty(), body.as_object_mut()) {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                },
            })
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, tool_calls } => {
            let mut message = Map::new();
            message.insert("role".to_owned(), "assistant".into());
            message.insert("content".to_owned(), text.as_str().into());
            if !tool_calls.is_empty() {
                let calls = tool_calls.iter().map(tool_call);
                message.insert("tool_calls".to_owned(), calls.collect());
            }
            Value::Object(message)
        }
        Message::ToolResult {
            call_id, output, ..
        } => json!({ "role": "tool", "tool_call_id": call_id, "content": output }),
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = match &call.input {
        ToolInput::Object(object) => Value::Object(object.clone()).to_string(),
        // Servers refuse a conversation with arguments that are no JSON. The result says what they were.
        ToolInput::Invalid(_) => "{}".to_owned(),
    };
    let mut json = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    });
    // Gemini needs the signatures of its thoughts back in the next request.
    if let (Some(data), Some(json)) = (&call.provider_data, json.as_object_mut()) {
        json.insert(PROVIDER_DATA.to_owned(), data.clone());
    }
    json
}

/// Reader of the chunks of a completion.
#[derive(Debug, Default)]
pub(crate) struct Reader(Assembly);

impl Reader {
    pub(super) fn read(&mut self, frame: &Frame) -> Result<Vec<Read>, BrokenStream> {
        if frame.data.trim() == "[DONE]" {
            return Ok(vec![Read::End(self.0.finish())]);
        }
        let chunk: Value =
            serde_json::from_str(&frame.data).map_err(|_| BrokenStream::Malformed(NAME))?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Ok(vec![reported(error)]);
        }
        self.read_usage(&chunk);
        // The chunk with the usage has no choices.
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(vec![Read::Nothing]);
        };
        let mut read = Vec::new();
        let content = text(choice, "/delta/content");
        if !content.is_empty() {
            self.0.text(content)?;
            read.push(Read::Text(content.to_owned()));
        }
        let calls = choice
            .pointer("/delta/tool_calls")
            .and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let index = number(call, "/index").ok_or(BrokenStream::NoIndex)?;
            let part = CallPart {
                id: text(call, "/id"),
                name: text(call, "/function/name"),
                arguments: text(call, "/function/arguments"),
                provider_data: call.get(PROVIDER_DATA).cloned(),
            };
            self.0.call(index, part)?;
            read.push(Read::CallPart);
        }
        match text(choice, "/finish_reason") {
            "length" => self.0.stop = StopReason::Length,
            "content_filter" => self.0.stop = StopReason::Filtered,
            _ => {}
        }
        Ok(read)
    }

    /// Reads the usage, which comes once, in the last chunk or with each one as a sum so far.
    fn read_usage(&mut self, chunk: &Value) {
        // Chunks before the last have `"usage": null`, which must not erase a sum.
        if chunk.get("usage").is_some_and(Value::is_object) {
            self.0.usage = Usage {
                input_tokens: number(chunk, "/usage/prompt_tokens"),
                output_tokens: number(chunk, "/usage/completion_tokens"),
                total_tokens: number(chunk, "/usage/total_tokens"),
            };
        }
    }
}

fn reported(error: &Value) -> Read {
    let code = |field: &str| {
        let code = error.get(field)?;
        // Servers send the status as a number or as a text.
        let code = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
        u16::try_from(code)
            .ok()
            .filter(|code| (400..600).contains(code))
    };
    let message = error.as_str().unwrap_or_else(|| text(error, "/message"));
    Read::Error {
        status: code("code").or_else(|| code("status")),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut Reader, data: &Value) -> Result<Vec<Read>, BrokenStream> {
        reader.read(&Frame {
            event: String::new(),
            data: data.to_string(),
        })
    }

    #[test]
    fn a_part_of_a_call_needs_an_index() {
        let chunk =
            json!({ "choices": [{ "delta": { "tool_calls": [{ "id": "a", "function": {} }] } }] });
        assert_eq!(
            read(&mut Reader::default(), &chunk),
            Err(BrokenStream::NoIndex)
        );
    }

    #[test]
    fn an_error_says_its_status_if_it_has_one() {
        let mut reader = Reader::default();
        for (error, status) in [
            (json!({ "code": 429, "message": "m" }), Some(429)),
            (json!({ "code": "503", "message": "m" }), Some(503)),
            (json!({ "code": "overloaded", "message": "m" }), None),
            (json!("m"), None),
        ] {
            let read = read(&mut reader, &json!({ "error": error })).unwrap();
            let message = "m".to_owned();
            assert_eq!(read, [Read::Error { status, message }]);
        }
    }

    #[test]
    fn chunks_without_choices_are_no_part() {
        let mut reader = Reader::default();
        for chunk in [
            json!({}),
            json!({ "choices": [] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 3 } }),
        ] {
            assert_eq!(read(&mut reader, &chunk), Ok(vec![Read::Nothing]));
        }
        assert_eq!(reader.0.usage.input_tokens, Some(3));
    }
}
