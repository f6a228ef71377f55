//! Hostile queries through the tool `query_data`: of assistants, and of the agent.

use labdata_test_llm::Reply;
use serde_json::{Value, json};

use super::lab::call_tool;
use crate::{agent::lab::AgentLab, hostile_queries::ATTACKS, on_postgres::OnPostgres};

const QUERY: &str = "/api/v1/tools/query";

/// Maximum number of rows that the tool shows.
const ROWS: u64 = 1_000;

/// Calls per run of the agent, fewer than it may make.
const CALLS: usize = 40;

/// An organization with samples and curves, and the hostile queries against it.
async fn hostile(lab: &AgentLab) -> Vec<String> {
    let columns = json!([{ "name": "name", "data_type": "string" }]);
    let definition = json!({ "semantic_category": "curated", "columns": columns });
    lab.on.define("sample", definition.clone()).await;
    let curve = json!([
        { "name": "sample", "data_type": "string", "references": "sample" },
        { "name": "order", "data_type": "integer", "is_nullable": false },
        { "name": "od", "data_type": "float" },
    ]);
    let curve = json!({ "semantic_category": "raw", "columns": curve });
    lab.on.define("curve", curve).await;
    lab.on.insert("sample", json!([{ "name": "ours" }])).await;
    let theirs = theirs(lab, &definition).await;
    let ours = lab.on.server.organization.as_uuid().simple().to_string();
    let attacks = ATTACKS.iter().map(|attack| {
        let attack = attack.replace("{theirs}", &format!("org_{theirs}"));
        attack.replace("{ours}", &format!("org_{ours}"))
    });
    attacks.collect()
}

/// Another organization with a secret; returns the name of its schema without `org_`.
async fn theirs(lab: &AgentLab, definition: &Value) -> String {
    let stranger = lab.on.server.stranger().await;
    let path = "/api/v1/tables/secret";
    let request = stranger
        .request(reqwest::Method::PUT, path)
        .json(definition);
    crate::server::send(request).await.json(200);
    let rows = json!({ "tables": [{ "table": "secret", "rows": [{ "name": "hush" }] }] });
    stranger
        .post(crate::on_postgres::WRITE, &rows)
        .await
        .json(200);
    let behind = lab.on.behind().await;
    let find = "select id::text from labdata.organization where name = 'another lab'";
    let id: String = behind.query_one(find, &[]).await.unwrap().get(0);
    id.replace('-', "")
}

/// Answer of `tools/query`: its rows as far as the tool shows them, or its refusal.
async fn asked(lab: &OnPostgres, attack: &str) -> Result<Value, String> {
    let body = json!({ "query": attack });
    let reply = lab.client.post(QUERY, &body).await;
    if reply.status == 200 {
        let mut response = reply.json(200);
        let rows = response["data"].as_array_mut().unwrap();
        rows.truncate(usize::try_from(ROWS).unwrap());
        return Ok(response["data"].take());
    }
    Err(reply.detail(400))
}

/// Compares the output of the tool with the answer of `tools/query`.
fn assert_same(attack: &str, (text, is_error): (&str, bool), asked: &Result<Value, String>) {
    assert!(!text.contains("hush"), "{attack}: {text}");
    match asked {
        Err(refusal) => {
            assert!(is_error, "{attack}: {text}");
            assert_eq!(text, refusal, "{attack}");
        }
        Ok(data) => {
            assert!(!is_error, "{attack}: {text}");
            // A long output is cut off.
            if let Ok(output) = serde_json::from_str::<Value>(text) {
                assert_eq!(&output["data"], data, "{attack}");
            }
        }
    }
}

async fn names(lab: &OnPostgres) -> Value {
    let query = json!({ "query": "select name from sample" });
    lab.client.post(QUERY, &query).await.json(200)["data"].take()
}

#[tokio::test]
async fn hostile_queries_get_from_the_tool_what_the_endpoint_answers() {
    let lab = AgentLab::start().await;
    let attacks = hostile(&lab).await;
    for attacks in attacks.chunks(CALLS) {
        let mut reply = Reply::text("");
        for (number, attack) in attacks.iter().enumerate() {
            let arguments = json!({ "query": attack, "limit": ROWS });
            reply = reply.and_call(
                &format!("call_{number}"),
                "query_data",
                &arguments.to_string(),
            );
        }
        lab.provider.will(reply);
        lab.provider.will(Reply::text("done"));
        let run = lab.run("Attack").await;
        let calls = run["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), attacks.len());
        for (attack, call) in attacks.iter().zip(calls) {
            let expected = asked(&lab.on, attack).await;
            let arguments = json!({ "query": attack, "limit": ROWS });
            let (text, is_error) = call_tool(&lab.client, "query_data", arguments).await;
            assert_same(attack, (&text, is_error), &expected);
            let output = match &call["output"] {
                Value::String(text) => text.clone(),
                json => json.to_string(),
            };
            assert_same(attack, (&output, call["is_error"] == true), &expected);
        }
    }
    assert_eq!(names(&lab.on).await, json!([["ours"]]));
}
