//! Messages, as Anthropic speaks them.

use std::collections::BTreeSet;

use labdata_domain::agent::{BrokenStream, Message, StopReason, ToolCall, ToolInput};
use labdata_ports::agent::ModelRequest;
use serde_json::{Value, json};

use super::{number, text};
use crate::{
    assembly::{Assembly, CallPart, Read},
    frames::Frame,
};

const NAME: &str = "the messages API";

/// Maximum number of tokens of a response; the API demands one.
const MAX_TOKENS: u32 = 8_192;

pub(super) fn body(request: &ModelRequest) -> Value {
    let mut body = json!({
        "model": request.model,
        "max_tokens": MAX_TOKENS,
        "system": request.instructions,
        "messages": messages(&request.messages),
        "stream": true,
    });
    if let (false, Some(body)) = (request.tools.is_empty(), body.as_object_mut()) {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.schema,
            })
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    body
}

/// The conversation, in which the roles alternate: results of tools are of the user.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = blocks(message);
        match turns.last_mut() {
            // The results of all calls of a turn have to be in one message.
            Some((last, turn)) if *last == role => turn.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    // A message has at least one block.
    turns.retain(|(_, blocks)| !blocks.is_empty());
    turns
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn blocks(message: &Message) -> (&'static str, Vec<Value>) {
    // The API refuses texts without a visible character.
    let text_block =
        |text: &str| (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    match message {
        Message::User(text) => ("user", text_block(text).into_iter().collect()),
        Message::Assistant { text, tool_calls } => {
            let calls = tool_calls.iter().map(tool_use);
            (
                "assistant",
                text_block(text).into_iter().chain(calls).collect(),
            )
        }
        Message::ToolResult {
            call_id,
            output,
            is_error,
        } => {
            let block = json!({
                "type": "tool_result",
                "tool_use_id": valid_id(call_id),
                "content": output,
                "is_error": is_error,
            });
            ("user", vec![block])
        }
    }
}

fn tool_use(call: &ToolCall) -> Value {
    let input = match &call.input {
        ToolInput::Object(object) => Value::Object(object.clone()),
        // The API takes objects only. The result says what the arguments were.
        ToolInput::Invalid(_) => json!({}),
    };
    json!({ "type": "tool_use", "id": valid_id(&call.id), "name": valid_id(&call.name), "input": input })
}

/// The id with the characters that the API takes. A chat may have been begun with another provider.
fn valid_id(id: &str) -> String {
    let valid = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    id.chars()
        .map(|letter| if valid(letter) { letter } else { '_' })
        .collect()
}

/// Reader of the events of a message.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    assembly: Assembly,
    /// Indexes of the blocks so far.
    blocks: BTreeSet<u64>,
}

/// Maximum number of blocks of a response.
const MAX_BLOCKS: usize = 1_024;

impl Reader {
    pub(super) fn read(&mut self, frame: &Frame) -> Result<Vec<Read>, BrokenStream> {
        let data: Value =
            serde_json::from_str(&frame.data).map_err(|_| BrokenStream::Malformed(NAME))?;
        let read = match text(&data, "/type") {
            "message_start" => {
                self.read_usage(&data, "/message/usage");
                Read::Nothing
            }
            "content_block_start" => self.start_block(&data)?,
            "content_block_delta" => self.continue_block(&data)?,
            "message_delta" => {
                self.read_usage(&data, "/usage");
                match text(&data, "/delta/stop_reason") {
                    "max_tokens" => self.assembly.stop = StopReason::Length,
                    "refusal" => self.assembly.stop = StopReason::Filtered,
                    _ => {}
                }
                Read::Nothing
            }
            "message_stop" => Read::End(self.assembly.finish()),
            "error" => reported(&data),
            // Pings, the ends of blocks, and events of later versions.
            _ => Read::Nothing,
        };
        Ok(vec![read])
    }

    fn start_block(&mut self, data: &Value) -> Result<Read, BrokenStream> {
        let index = number(data, "/index").ok_or(BrokenStream::NoIndex)?;
        // Two blocks under one index would join the arguments of two calls.
        if !self.blocks.insert(index) {
            return Err(BrokenStream::CollidingIndex);
        }
        if self.blocks.len() > MAX_BLOCKS {
            return Err(BrokenStream::TooLong);
        }
        match text(data, "/content_block/type") {
            "text" => self.text(text(data, "/content_block/text")),
            "tool_use" => {
                let part = CallPart {
                    id: text(data, "/content_block/id"),
                    name: text(data, "/content_block/name"),
                    ..CallPart::default()
                };
                self.assembly.call(index, part)?;
                Ok(Read::CallPart)
            }
            // Thoughts are not displayed.
            _ => Ok(Read::Nothing),
        }
    }

    fn continue_block(&mut self, data: &Value) -> Result<Read, BrokenStream> {
        let index = number(data, "/index").ok_or(BrokenStream::NoIndex)?;
        match text(data, "/delta/type") {
            "text_delta" => self.text(text(data, "/delta/text")),
            "input_json_delta" => {
                // Arguments of a call without id and name could not be run.
                if !self.assembly.has_call(index) {
                    return Err(BrokenStream::Malformed(NAME));
                }
                let part = CallPart {
                    arguments: text(data, "/delta/partial_json"),
                    ..CallPart::default()
                };
                self.assembly.call(index, part)?;
                Ok(Read::CallPart)
            }
            _ => Ok(Read::Nothing),
        }
    }

    fn text(&mut self, text: &str) -> Result<Read, BrokenStream> {
        if text.is_empty() {
            return Ok(Read::Nothing);
        }
        self.assembly.text(text)?;
        Ok(Read::Text(text.to_owned()))
    }

    /// Reads the usage. The first event has the tokens of the request, the last one those of the response.
    fn read_usage(&mut self, data: &Value, at: &str) {
        let Some(reported) = data.pointer(at) else {
            return;
        };
        let cached = ["/cache_creation_input_tokens", "/cache_read_input_tokens"];
        let cached = cached.iter().filter_map(|part| number(reported, part));
        let usage = &mut self.assembly.usage;
        if let Some(input) = number(reported, "/input_tokens") {
            // The API counts cached tokens apart, while other providers include them.
            usage.input_tokens = Some(cached.fold(input, u64::saturating_add));
        }
        // An event without the number must not erase an earlier one.
        usage.output_tokens = number(reported, "/output_tokens").or(usage.output_tokens);
    }
}

fn reported(data: &Value) -> Read {
    let status = match text(data, "/error/type") {
        "rate_limit_error" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        // The request itself is wrong, so a retry would not help.
        _ => None,
    };
    Read::Error {
        status,
        message: text(data, "/error/message").to_owned(),
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
    fn blocks_have_indexes_of_their_own() {
        let start = |index: Value| {
            json!({
                "type": "content_block_start",
                "index": index,
                "content_block": { "type": "tool_use", "id": "a", "name": "b", "input": {} },
            })
        };
        let mut reader = Reader::default();
        assert_eq!(
            read(&mut reader, &start(json!(0))),
            Ok(vec![Read::CallPart])
        );
        assert_eq!(
            read(&mut reader, &start(json!(0))),
            Err(BrokenStream::CollidingIndex)
        );
        assert_eq!(
            read(&mut reader, &start(json!(null))),
            Err(BrokenStream::NoIndex)
        );
        let delta = json!({
            "type": "content_block_delta",
            "index": 7,
            "delta": { "type": "input_json_delta", "partial_json": "{" },
        });
        assert_eq!(
            read(&mut reader, &delta),
            Err(BrokenStream::Malformed(NAME))
        );
    }

    #[test]
    fn results_of_tools_and_the_next_prompt_are_one_message() {
        let call = ToolCall {
            id: "call.1".to_owned(),
            name: "x".to_owned(),
            input: ToolInput::Invalid("no".to_owned()),
            provider_data: None,
        };
        let result = |id: &str| Message::ToolResult {
            call_id: id.to_owned(),
            output: "1".to_owned(),
            is_error: false,
        };
        let conversation = [
            Message::User("a".to_owned()),
            Message::Assistant {
                text: " ".to_owned(),
                tool_calls: vec![call],
            },
            result("call.1"),
            result("call.2"),
            Message::User("b".to_owned()),
        ];
        let messages = messages(&conversation);
        let roles: Vec<&str> = messages
            .iter()
            .map(|message| text(message, "/role"))
            .collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(text(&messages[1], "/content/0/id"), "call_1");
        assert_eq!(messages[1]["content"].as_array().unwrap().len(), 1);
        assert_eq!(messages[2]["content"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn usage_is_put_together_from_both_ends() {
        let mut reader = Reader::default();
        let start = json!({
            "type": "message_start",
            "message": { "usage": { "input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1 } },
        });
        read(&mut reader, &start).unwrap();
        let delta = json!({ "type": "message_delta", "usage": { "output_tokens": 7 } });
        read(&mut reader, &delta).unwrap();
        let end = read(&mut reader, &json!({ "type": "message_stop" })).unwrap();
        let [Read::End(response)] = end.as_slice() else {
            panic!("{end:?}");
        };
        assert_eq!(
            (response.usage.input_tokens, response.usage.total_tokens),
            (Some(15), Some(22))
        );
    }
}
