//! Runs that fail after they have written.

use labdata_test_llm::Reply;
use serde_json::{Value, json};

use super::lab::{AgentLab, CHATS, Events, run};

const EXECUTIONS: &str = "/api/v1/job-executions";

/// The provider asks to write a row, and then breaks.
fn will_break(lab: &AgentLab, name: &str) {
    let rows = json!({ "tables": [{ "table": "sample", "rows": [{ "name": name }] }] });
    lab.provider
        .will(Reply::call("call_1", "write_data", &rows));
    // Not repeated: the status says that the request is at fault.
    lab.provider.will(Reply::error(400, "oops"));
}

/// The only execution of the agent that a test has left, and its id.
async fn execution(lab: &AgentLab, said: &str) -> Value {
    let listed = lab.client.get(EXECUTIONS).await.json(200);
    let mut listed = listed.as_array().unwrap().iter();
    let named =
        listed.find(|execution| said.contains(execution["job_execution_id"].as_str().unwrap()));
    named.unwrap_or_else(|| panic!("{said}")).clone()
}

async fn newest_chat(lab: &AgentLab) -> Value {
    let chats = lab.client.get(CHATS).await.json(200);
    let path = format!("{CHATS}/{}", chats[0]["id"].as_str().unwrap());
    lab.client.get(&path).await.json(200)
}

#[tokio::test]
async fn a_failed_run_says_what_it_has_written_and_why_it_failed() {
    let lab = AgentLab::start().await;
    lab.define_sample().await;
    will_break(&lab, "a");
    let body = json!({ "prompt": "Write a sample", "save": true });
    let detail = run(&lab.client, body).await.detail(502);
    let why = "the provider of the model answered 400: oops";
    assert!(detail.starts_with(&format!("{why}; ")), "{detail}");
    let failed = execution(&lab, &detail).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error_message"], why);
    let notices = lab.client.get("/api/v1/notifications").await.json(200);
    assert_eq!(notices[0]["body"], why);

    let chat = newest_chat(&lab).await;
    let messages = chat["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{chat}");
    assert_eq!(messages[0]["content"], "Write a sample");
    assert_eq!(messages[1]["tool_calls"][0]["tool_name"], "write_data");
    let end = messages[2]["content"].as_str().unwrap();
    assert_eq!(end, format!("(The run failed: {why}.)"));

    // The chat continues with the failed turn, and holds the question of the next one that fails.
    will_break(&lab, "b");
    let body = json!({ "prompt": "Again", "chat_id": chat["id"] });
    let events = Events::of(&lab.client, body).await.all().await;
    let last = events.last().unwrap();
    assert_eq!(
        (last.name.as_str(), &last.data["status"]),
        ("error", &json!(502))
    );
    let said = last.data["error"].as_str().unwrap();
    let failed = execution(&lab, said).await;
    let chat = newest_chat(&lab).await;
    assert_eq!(chat["messages"].as_array().unwrap().len(), 6, "{chat}");
    assert_eq!(chat["messages"][3]["content"], "Again");

    let path = format!(
        "{EXECUTIONS}/{}",
        failed["job_execution_id"].as_str().unwrap()
    );
    let again = json!({ "status": "failed" });
    let refused = lab.client.patch(&path, &again).await;
    assert_eq!(refused.code(400), "execution_not_closable");
    let reverted = lab
        .client
        .post(&format!("{path}/revert"), &Value::Null)
        .await;
    assert_eq!(reverted.json(200)["deleted_count"], 1);
}
