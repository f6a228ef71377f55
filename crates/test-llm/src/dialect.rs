//! Replies in the words of a dialect.

use serde_json::{Value, json};

use crate::reply::{Call, Fault, Reply};

/// The events of a reply in a stream, up to its fault; each is the text of one or more lines.
pub(crate) fn events(reply: &Reply, is_messages: bool) -> Vec<String> {
    let mut events = if is_messages {
        messages(reply)
    } else {
        completions(reply)
    };
    match reply.fault {
        Some(Fault::NoEnd | Fault::Reset | Fault::SilentEnd) => {
            events.end.clear();
            events.calls.clear();
        }
        Some(Fault::SilentBody) => return Vec::new(),
        Some(Fault::Garbage) => events.calls.push("data: {\"choices\": [\n\n".to_owned()),
        Some(Fault::ErrorEvent) => {
            events.calls = vec![error_event(is_messages)];
            events.end.clear();
        }
        Some(Fault::EndlessEvent) => {
            events.calls = vec![format!("data: {}", "x".repeat(2 << 20))];
            events.end.clear();
        }
        _ => {}
    }
    [events.start, events.texts, events.calls, events.end].concat()
}

/// The body of a reply that is no stream.
pub(crate) fn whole(reply: &Reply, is_messages: bool) -> Value {
    let text = reply.texts.concat();
    if is_messages {
        let mut content = vec![json!({ "type": "text", "text": text })];
        content.extend(reply.calls.iter().map(|call| {
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": arguments(call) })
        }));
        return json!({
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": stop_reason(reply),
            "usage": { "input_tokens": reply.usage.input, "output_tokens": reply.usage.output },
        });
    }
    let calls = reply.calls.iter().map(|call| {
        json!({
            "id": call.id,
            "type": "function",
            "function": { "name": call.name, "arguments": call.arguments },
        })
    });
    let calls: Vec<Value> = calls.collect();
    json!({
        "object": "chat.completion",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": text, "tool_calls": calls },
            "finish_reason": finish_reason(reply),
        }],
        "usage": usage(reply),
    })
}

/// The body of an error.
pub(crate) fn error(reply: &Reply, is_messages: bool) -> Value {
    if is_messages {
        return json!({ "type": "error", "error": { "type": "api_error", "message": reply.message } });
    }
    json!({ "error": { "message": reply.message, "type": "error", "code": null } })
}

struct Events {
    start: Vec<String>,
    texts: Vec<String>,
    calls: Vec<String>,
    end: Vec<String>,
}

/// Arguments are sent in two parts.
fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let (first, second) = text.split_at(middle.unwrap_or(0));
    [first, second]
}

/// The calls with their indexes.
fn indexed(reply: &Reply, first: usize) -> Vec<(usize, &Call)> {
    let calls: Vec<&Call> = match reply.fault {
        Some(Fault::DuplicateCalls) => reply.calls.iter().flat_map(|call| [call, call]).collect(),
        _ => reply.calls.iter().collect(),
    };
    let indexed = calls.into_iter().enumerate();
    indexed
        .map(|(number, call)| match reply.fault {
            Some(Fault::CollidingIndex) => (first, call),
            Some(Fault::IndexFromOne) => (first + number + 1, call),
            _ => (first + number, call),
        })
        .collect()
}

fn completions(reply: &Reply) -> Events {
    let chunk = |delta: Value, finish_reason: Option<&str>| {
        let chunk = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }],
        });
        format!("data: {chunk}\n\n")
    };
    let mut calls = Vec::new();
    for (index, call) in indexed(reply, 0) {
        for (number, part) in halves(&call.arguments).into_iter().enumerate() {
            let mut json = json!({ "index": index, "function": { "arguments": part } });
            if let (0, Some(object)) = (number, json.as_object_mut()) {
                let function = json!({ "name": call.name, "arguments": part });
                object.insert("id".to_owned(), call.id.as_str().into());
                object.insert("type".to_owned(), "function".into());
                object.insert("function".to_owned(), function);
            }
            if let (Some(Fault::NoIndex), Some(object)) = (reply.fault, json.as_object_mut()) {
                object.remove("index");
            }
            calls.push(chunk(json!({ "tool_calls": [json] }), None));
        }
    }
    let usage = json!({ "choices": [], "usage": usage(reply) });
    Events {
        start: vec![chunk(json!({ "role": "assistant", "content": "" }), None)],
        texts: reply
            .texts
            .iter()
            .map(|text| chunk(json!({ "content": text }), None))
            .collect(),
        calls,
        end: vec![
            chunk(json!({}), Some(finish_reason(reply))),
            format!("data: {usage}\n\n"),
            "data: [DONE]\n\n".to_owned(),
        ],
    }
}

fn messages(reply: &Reply) -> Events {
    let event = |mut data: Value| {
        if let (Some(Fault::NoIndex), Some(object)) = (reply.fault, data.as_object_mut()) {
            object.remove("index");
        }
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {name}\ndata: {data}\n\n")
    };
    let block = |index: usize, start: Value, deltas: Vec<Value>| {
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": start });
        let deltas = deltas
            .into_iter()
            .map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        let stop = json!({ "type": "content_block_stop", "index": index });
        let events = std::iter::once(start).chain(deltas).chain([stop]);
        events.map(event).collect::<Vec<String>>()
    };
    let deltas = reply.texts.iter();
    let deltas = deltas.map(|text| json!({ "type": "text_delta", "text": text }));
    let mut texts = block(0, json!({ "type": "text", "text": "" }), deltas.collect());
    texts.insert(1, event(json!({ "type": "ping" })));
    let calls = indexed(reply, 1).into_iter().flat_map(|(index, call)| {
        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        let parts = halves(&call.arguments);
        let deltas = parts.map(|part| json!({ "type": "input_json_delta", "partial_json": part }));
        block(index, start, deltas.to_vec())
    });
    let usage = json!({ "input_tokens": reply.usage.input, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "role": "assistant", "content": [], "usage": usage });
    Events {
        start: vec![event(
            json!({ "type": "message_start", "message": message }),
        )],
        texts,
        calls: calls.collect(),
        end: vec![
            event(json!({
                "type": "message_delta",
                "delta": { "stop_reason": stop_reason(reply) },
                "usage": { "output_tokens": reply.usage.output },
            })),
            event(json!({ "type": "message_stop" })),
        ],
    }
}

fn error_event(is_messages: bool) -> String {
    let error = json!({ "type": "overloaded_error", "message": "overloaded", "code": 529 });
    if is_messages {
        return format!(
            "event: error\ndata: {}\n\n",
            json!({ "type": "error", "error": error })
        );
    }
    format!("data: {}\n\n", json!({ "error": error }))
}

fn usage(reply: &Reply) -> Value {
    json!({
        "prompt_tokens": reply.usage.input,
        "completion_tokens": reply.usage.output,
        "total_tokens": reply.usage.input + reply.usage.output,
    })
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() {
        reply.finish_reason
    } else {
        "tool_calls"
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.finish_reason {
        _ if !reply.calls.is_empty() => "tool_use",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        _ => "end_turn",
    }
}

fn arguments(call: &Call) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_default()
}
