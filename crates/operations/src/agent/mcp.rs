//! `POST /mcp`

use labdata_request_body::{Definitions, Schema};
use serde_json::{Value, json};

use crate::{About, BodyDescription, DescribeBody, Method, Operation, Read, Tag, body::JSON};

/// A JSON-RPC message, which the implementation of the protocol reads.
#[derive(Debug)]
pub enum JsonRpcMessage {}

impl DescribeBody for JsonRpcMessage {
    fn describe(_: &mut Definitions) -> Option<BodyDescription> {
        Some(BodyDescription {
            content_type: JSON,
            schema: Schema::of("object")
                .with("additionalProperties", true)
                .with("required", json!(["jsonrpc", "method"]))
                .with(
                    "properties",
                    json!({
                        "jsonrpc": { "type": "string", "const": "2.0" },
                        "method": { "type": "string" },
                        "id": { "type": ["string", "integer"] },
                        "params": { "type": ["object", "null"] },
                    }),
                ),
            is_required: true,
            example: Some(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
        })
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "mcp",
        method: Method::Post,
        path: "/mcp",
        tag: Tag::Agent,
        summary: "Responds to a message of the Model Context Protocol",
        description: "Streamable HTTP without sessions: a JSON-RPC message in, its response out. Assistants \
            connect to `/mcp` with an API key as bearer token, and have the tools and rights that the \
            agent has with that key. `GET` and `DELETE`, which belong to sessions, have the response 405.",
        returns: "The response: a JSON-RPC message",
        refusals: &[
            (
                403,
                "The key lacks the read scope, or the request comes from the page of another site",
            ),
            (503, "Too many requests of the organization are in progress"),
        ],
    }
    .served_by_hand::<Read, JsonRpcMessage, (), (), Value>()
    .with_empty_responses(&[
        (202, "The message needs no response"),
        (406, "The client accepts not both application/json and text/event-stream"),
    ])
}
