//! Every tool.

use labdata_api::routes::openapi;
use labdata_domain::people::scope::Scope;
use serde_json::json;

use super::{Lab, arguments, call_tool, without_ids};
use crate::mcp::lab::ask;

/// Tools that the key of a run does not have.
const TOOLS_NOT_FOR_RUNS: &[&str] = &["create_job", "update_job"];

#[tokio::test]
async fn each_tool_gives_each_caller_what_its_operation_would() {
    let document = openapi();
    let lab = Lab::start().await;
    let tools = ask(&lab.admin, "tools/list", json!({})).await.json(200)["result"]["tools"].take();
    let of_reader = lab.server.client(&[Scope::Read]).await;
    let offered = ask(&of_reader, "tools/list", json!({})).await.json(200);
    let offered = offered["result"]["tools"].as_array().unwrap();
    let stranger = lab.server.stranger().await;
    let run = lab.run().await;
    let mut problems = Vec::new();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let (theirs, unknown) = (
            arguments(&document, tool, &lab.records),
            arguments(&document, tool, &lab.unknown),
        );
        if theirs != unknown {
            let (found, _) = call_tool(&stranger, tool, theirs.clone()).await;
            let (missing, _) = call_tool(&stranger, tool, unknown).await;
            if without_ids(&found, &lab.records) != without_ids(&missing, &lab.unknown) {
                problems.push(format!("{name} by a stranger: {found}, not {missing}"));
            }
        }
        if !offered.iter().any(|it| it["name"] == name) {
            let (refused, failed) = call_tool(&of_reader, tool, theirs.clone()).await;
            if !(failed && refused.contains("write")) {
                problems.push(format!("{name} by a reader: {refused}"));
            }
        }
        let (text, failed) = call_tool(&run, tool, theirs).await;
        if (failed && text.contains("its own run")) != TOOLS_NOT_FOR_RUNS.contains(&name) {
            problems.push(format!("{name} by a run: {text}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let writer = lab.server.client(&[Scope::Write]).await;
    let refused = ask(&writer, "tools/list", json!({})).await;
    assert_eq!(refused.detail(403), "this API key lacks the read scope");
}
