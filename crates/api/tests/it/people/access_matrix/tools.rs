//! Each tool of the agent and of MCP, about a hidden table and about none.

use labdata_api::routes::openapi;
use serde_json::{Value, json};

use super::{HIDDEN, Lab, MARK, NOTHING, leak};
use crate::{
    mcp::lab::ask,
    people::rights_matrix::{UNKNOWN, arguments, call_tool},
};

#[tokio::test]
async fn no_tool_tells_of_a_hidden_table() {
    let document = openapi();
    let lab = Lab::start().await;
    let (hidden, nothing) = (lab.records(HIDDEN, &lab.row), lab.records(NOTHING, UNKNOWN));
    let tools =
        ask(&lab.on.client, "tools/list", json!({})).await.json(200)["result"]["tools"].take();
    let mut leaks = Vec::new();
    for tool in tools.as_array().unwrap() {
        let about_hidden = arguments(&document, tool, &hidden);
        let about_nothing = arguments(&document, tool, &nothing);
        for outsider in lab.outsiders.iter().filter(|it| it.cookie.is_none()) {
            let ask =
                async |about: &Value| call_tool(&outsider.client, tool, about.clone()).await.0;
            let found = ask(&about_hidden).await;
            let leak = if about_hidden == about_nothing {
                found.contains(MARK).then_some(found)
            } else {
                leak(&found, &ask(&about_nothing).await)
            };
            if let Some(leak) = leak {
                leaks.push(format!("{} by {}: {leak}", tool["name"], outsider.name));
            }
        }
    }
    for outsider in lab.outsiders.iter().filter(|it| it.cookie.is_none()) {
        let listed = ask(&outsider.client, "resources/list", json!({}))
            .await
            .json(200);
        let uri = json!({"uri": format!("labdata://tables/{HIDDEN}")});
        let read = ask(&outsider.client, "resources/read", uri).await.text;
        for text in [listed.to_string(), read.replace(HIDDEN, "")] {
            if text.contains(MARK) {
                leaks.push(format!("resources by {}: {text}", outsider.name));
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
