//! Keys, organizations and shares of several assistants.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future;
use labdata_application::agent::tools::{Tool, ToolContext, ToolRegistry};
use labdata_domain::{
    agent::{ToolInput, ToolOutput},
    people::scope::Scope::{self, Read, Write},
};
use labdata_ports::agent::ToolDefinition;
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::lab::{ask, call_tool, message};
use crate::{
    agent::lab::AgentLab,
    on_postgres::OnPostgres,
    server::{Client, send},
};

/// Number of requests of one organization that a server answers at a time.
const AT_A_TIME: usize = 8;

/// A tool that never returns, and counts its calls.
struct Endless(Arc<Semaphore>);

#[async_trait]
impl Tool for Endless {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: "Waits forever.".to_owned(),
            schema: Map::from_iter([("type".to_owned(), "object".into())]),
        }
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, _context: &ToolContext<'_>, _input: &ToolInput) -> ToolOutput {
        self.0.add_permits(1);
        future::pending().await
    }
}

/// A write of one row; returns its execution.
async fn written(client: &Client, name: &str) -> String {
    let rows = json!({ "tables": [{ "table": "sample", "rows": [{ "name": name }] }] });
    let (text, is_error) = call_tool(client, "write_data", rows).await;
    assert!(!is_error, "{text}");
    let output: Value = serde_json::from_str(&text).unwrap();
    output["job_execution_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_key_that_is_revoked_between_two_requests_is_refused_and_its_writes_stay_one_execution() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    let created = json!({ "name": "assistant", "scopes": ["read", "write"] });
    let created = lab
        .client
        .post("/api/v1/api-keys", &created)
        .await
        .json(200);
    let assistant = lab.on.server.with_key(created["key"].as_str().unwrap());
    let execution = written(&assistant, "a").await;
    assert_eq!(written(&assistant, "b").await, execution);
    let closed = json!({ "status": "failed" });
    let closed = lab
        .client
        .patch(&format!("/api/v1/job-executions/{execution}"), &closed)
        .await;
    assert_eq!(closed.code(400), "execution_not_closable");

    let path = format!("/api/v1/api-keys/{}", created["id"].as_str().unwrap());
    assert_eq!(lab.client.delete(&path).await.status, 204);
    for method in ["tools/list", "tools/call", "resources/list", "ping"] {
        let refused = ask(&assistant, method, json!({ "name": "list_jobs" })).await;
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        refused.detail(401);
    }
    let reverted = json!({ "job_execution_id": execution });
    assert_eq!(lab.on.revert(&reverted).await["deleted_count"], 2);
}

#[tokio::test]
async fn assistants_of_two_organizations_and_of_two_keys_share_nothing() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    let stranger = lab.on.server.stranger().await;
    let columns = json!([{ "name": "name", "data_type": "string" }]);
    let definition = json!({ "semantic_category": "curated", "columns": columns });
    let put = stranger.request(Method::PUT, "/api/v1/tables/sample");
    send(put.json(&definition)).await.json(200);
    let scopes: [Scope; 2] = [Read, Write];
    let (one, other) = (
        lab.on.server.client(&scopes).await,
        lab.on.server.client(&scopes).await,
    );
    let executions = [
        written(&one, "one").await,
        written(&other, "other").await,
        written(&stranger, "theirs").await,
    ];
    assert!(
        executions[0] != executions[1] && executions[1] != executions[2],
        "{executions:?}"
    );
    for (client, names) in [
        (&one, json!([["one"], ["other"]])),
        (&stranger, json!([["theirs"]])),
    ] {
        let query = json!({ "query": "select name from sample order by name" });
        let (text, _) = call_tool(client, "query_data", query).await;
        let output: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(output["data"], names);
    }
    let theirs = json!({ "job_execution_id": executions[2] });
    let path = format!("/api/v1/job-executions/{}/revert", executions[2]);
    assert_eq!(one.post(&path, &theirs).await.status, 404);
}

#[tokio::test]
async fn an_organization_with_too_many_requests_waits_and_no_other_does() {
    let calls = Arc::new(Semaphore::new(0));
    let endless = ToolRegistry::new(vec![Arc::new(Endless(Arc::clone(&calls)))]);
    let lab = OnPostgres::with_agent(|agent, _| labdata_application::agent::Agent {
        tools: endless,
        ..agent
    })
    .await;
    let params = json!({ "name": "wait", "arguments": {} });
    // A user has half of what the organization has.
    let colleague = lab.server.colleague().await;
    let requests = (0..AT_A_TIME).map(|request| {
        let client = [&lab.client, &colleague][request % 2];
        let request = message(client, "tools/call", &params);
        tokio::spawn(request.send())
    });
    let requests: Vec<_> = requests.collect();
    let all = u32::try_from(AT_A_TIME).unwrap();
    calls.acquire_many(all).await.unwrap().forget();

    let stranger = lab.server.stranger().await;
    let ping = async |client: &Client| ask(client, "ping", json!({})).await;
    ping(&stranger).await.json(200);
    let refused = ping(&lab.client).await;
    assert!(refused.header("retry-after").is_some());
    refused.detail(503);

    for request in requests {
        request.abort();
    }
    // Their clients have left, so there is room again.
    ping(&lab.client).await.json(200);
}

#[tokio::test]
async fn a_long_output_is_cut_off_with_a_note_of_how_much_is_missing() {
    let lab = AgentLab::start().await;
    let query = json!({ "query": "select repeat('x', 100000) as long" });
    let (text, is_error) = call_tool(&lab.client, "query_data", query).await;
    assert!(!is_error);
    let (presented, note) = text.split_once("\n[The output is cut off: ").unwrap();
    assert_eq!(presented.len(), 16 << 10);
    assert!(note.starts_with("16384 of 100"), "{note}");
    assert!(note.contains("are missing"), "{note}");
}
