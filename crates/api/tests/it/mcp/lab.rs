//! Messages of the Model Context Protocol, as a client without a library sends them.

use labdata_application::people::authenticate::authenticate;
use labdata_domain::people::{actor::Actor, scope::Scope};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::server::{Client, Reply, TestServer, send};

pub(crate) const MCP: &str = "/mcp";

/// A request to `/mcp` without a body.
pub(crate) fn request(client: &Client) -> RequestBuilder {
    client
        .request(Method::POST, MCP)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
}

/// A request that calls a method.
pub(crate) fn message(client: &Client, method: &str, params: &Value) -> RequestBuilder {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    request(client).json(&message)
}

/// Calls a method.
pub(crate) async fn ask(client: &Client, method: &str, params: Value) -> Reply {
    send(message(client, method, &params)).await
}

/// Calls a tool; returns its text, and true if the call failed.
pub(crate) async fn call_tool(client: &Client, name: &str, arguments: Value) -> (String, bool) {
    let params = json!({ "name": name, "arguments": arguments });
    let response = ask(client, "tools/call", params).await.json(200);
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{response}"));
    (text.to_owned(), result["isError"] == true)
}

/// The actor of a new key.
pub(crate) async fn actor(server: &TestServer, scopes: &[Scope]) -> Actor {
    let key = server.key(scopes, |_| {}).await;
    authenticate(&server.services, &key).await.unwrap()
}
