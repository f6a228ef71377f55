//! Requests that are refused, and calls whose client leaves.

use std::time::Duration;

use labdata_domain::people::scope::Scope::{Read, Write};
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use super::lab::{MCP, actor, ask, call_tool, message, request};
use crate::{
    on_postgres::OnPostgres,
    server::{TestServer, send},
};

#[tokio::test]
async fn keys_and_scopes_are_checked_before_the_message() {
    let server = TestServer::start().await;
    let anonymous = ask(&server.anonymous(), "ping", Value::Null).await;
    assert_eq!(anonymous.header("www-authenticate"), Some("Bearer"));
    anonymous.detail(401);
    let wrong = server.with_key("ldk_aaaaaaaa_x");
    ask(&wrong, "ping", Value::Null).await.detail(401);
    let writer = server.client(&[Write]).await;
    let detail = ask(&writer, "tools/list", json!({})).await.detail(403);
    assert_eq!(detail, "this API key lacks the read scope");
}

#[tokio::test]
async fn a_page_of_another_site_is_not_answered() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    for origin in ["http://evil.example.com", "null"] {
        let foreign = message(&client, "tools/list", &json!({})).header("origin", origin);
        send(foreign).await.detail(403);
    }
    // A name that was bound to this server's address afterwards is sent as both.
    let rebound = message(&client, "tools/list", &json!({}))
        .header("host", "evil.example.com")
        .header("origin", "http://evil.example.com");
    let detail = send(rebound).await.detail(403);
    assert_eq!(
        detail,
        "requests of other sites' pages are not answered here"
    );
    let own = format!("http://{}", server.address);
    let from_own_page = message(&client, "tools/list", &json!({})).header("origin", own);
    send(from_own_page).await.json(200);
    ask(&client, "tools/list", json!({})).await.json(200);
}

#[tokio::test]
async fn the_headers_of_the_transport_are_checked() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for (accept, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/*", 200),
        ("*/*", 200),
        ("text/event-stream, */*;q=0.1", 200),
        ("", 200),
        ("text/event-stream", 406),
        ("text/html", 406),
        ("*/*, application/json;q=0", 406),
    ] {
        let request = client.request(Method::POST, MCP).header("accept", accept);
        assert_eq!(send(request.json(&ping)).await.status, status, "{accept}");
    }
    let accepted = || {
        let request = client.request(Method::POST, MCP);
        request.header("accept", "application/json, text/event-stream")
    };
    // As revisions before 2025-06-18 send it.
    send(accepted().json(&ping)).await.json(200);
    for version in ["1999-01-01", "x"] {
        let request = accepted().header("mcp-protocol-version", version);
        let refused = send(request.json(&ping)).await;
        assert_eq!(refused.code(400), "protocol_version_unsupported");
        let detail = refused.detail(400);
        assert!(
            detail.contains(version) && detail.contains("2025-06-18"),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn there_are_no_sessions_to_follow_or_end() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::OPTIONS] {
        let request = client.request(method, MCP).header("mcp-session-id", "x");
        let reply = send(request.header("accept", "text/event-stream")).await;
        assert_eq!(reply.status, 405);
        assert_eq!(reply.header("allow"), Some("POST"));
    }
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let reply = ask(&client, "initialize", params).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json(200)["result"]["protocolVersion"], "2025-06-18");
    // A session that a client believes to have changes nothing.
    let ping = message(&client, "ping", &json!({})).header("mcp-session-id", "x");
    let reply = send(ping).await;
    assert_eq!(reply.header("mcp-session-id"), None);
    assert_eq!(reply.json(200)["result"], json!({}));
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(request(&client).json(&initialized)).await.status, 202);
}

#[tokio::test]
async fn bodies_of_another_type_size_or_shape_are_refused() {
    let server = TestServer::start().await;
    let client = server.client(&[Read]).await;
    let text = request(&client).header("content-type", "text/plain");
    assert_eq!(send(text.body("{}")).await.status, 415);
    let json = || request(&client).header("content-type", "application/json");
    let large = "x".repeat(4_718_592);
    assert_eq!(send(json().body(large)).await.status, 413);
    for (broken, code) in [
        ("", -32700),
        ("{", -32700),
        ("\u{0}", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc": "2.0"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, -32600),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}"#,
            -32600,
        ),
    ] {
        let refused = send(json().body(broken)).await;
        assert_eq!(refused.code(400), "body_unreadable", "{broken}");
        let refused = refused.json(400);
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert_eq!(refused["error"]["message"], refused["detail"]);
    }
    for (method, params, field) in [
        ("tools/call", json!({}), "params.name"),
        (
            "tools/call",
            json!({ "name": "list_jobs", "arguments": [] }),
            "params.arguments",
        ),
        ("resources/read", json!({}), "params.uri"),
        ("initialize", json!({}), "params.protocolVersion"),
    ] {
        let refused = ask(&client, method, params).await.json(200);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(field), "{message}");
    }
    let unknown = ask(&client, "tools/drop", json!({})).await.text;
    assert!(unknown.contains("-32601"), "{unknown}");
    let (text, is_error) = call_tool(&client, "no_such_tool", json!({})).await;
    assert!(
        is_error && text.starts_with("there is no tool of that name"),
        "{text}"
    );
}

#[tokio::test]
async fn the_schema_of_every_tool_is_the_one_of_the_agent() {
    let server = TestServer::start().await;
    let client = server.client(&[Read, Write]).await;
    let response = ask(&client, "tools/list", json!({})).await.json(200);
    let tools = response["result"]["tools"].as_array().unwrap();
    for tool in server
        .agent
        .tools
        .allowed(&actor(&server, &[Read, Write]).await)
    {
        let offered = tools.iter().find(|offered| offered["name"] == tool.name());
        let offered = offered.unwrap_or_else(|| panic!("{}", tool.name()));
        assert_eq!(
            offered["inputSchema"],
            Value::Object(tool.definition().schema)
        );
        let hints = &offered["annotations"];
        assert_eq!(hints["readOnlyHint"], !tool.needs_write());
        assert_eq!(hints["destructiveHint"], tool.is_destructive());
    }
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_query() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let slow = "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b";
    let params = json!({ "name": "query_data", "arguments": { "query": slow } });
    let call = message(&lab.client, "tools/call", &params).send();
    let call = tokio::spawn(call);
    let behind = lab.behind().await;
    let running = async || {
        let count = "select count(*) from pg_stat_activity where state = 'active' \
                     and query like '%generate_series(1, 100000) b%' and pid <> pg_backend_pid()";
        behind.query_one(count, &[]).await.unwrap().get::<_, i64>(0)
    };
    while running().await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    call.abort();
    // Far from the time limit of queries, which would end it as well.
    let ended = tokio::time::timeout(Duration::from_secs(6), async {
        while running().await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    ended.await.unwrap();
}
