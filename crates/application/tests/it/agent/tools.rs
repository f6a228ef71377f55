//! Calls of tools, with the rights of the caller.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_application::agent::tools::{Tool, ToolContext, ToolRegistry};
use labdata_domain::{
    agent::{
        JOB_ARCHIVED, Message, ModelResponse, RUN_QUEUED, RequestedCall, SCRIPT_REPLACED,
        ToolInput, ToolOutput,
    },
    people::{
        credential::InvalidCredential,
        scope::Scope::{Read, Write},
    },
};
use labdata_memory::ScriptedResponse;
use labdata_ports::agent::ToolDefinition;
use serde_json::{Map, Value, json};

use super::harness::{Scripted, calls, executions, experiment, outputs, says};
use crate::lab::Lab;

#[tokio::test]
async fn the_model_gets_the_output_of_a_tool() {
    let script = vec![
        calls("get_schema", &json!({ "tables": ["experiment"] })),
        says("x"),
    ];
    let scripted = Scripted::new(script).await;
    scripted.result(&[Read], "Tables?").await;
    let requests = scripted.model.requests();
    assert!(
        matches!(&requests[1].messages[2], Message::ToolResult { output, is_error: false, .. }
        if output.contains("\"name\":\"experiment\""))
    );
}

#[tokio::test]
async fn faults_of_a_call_are_outputs_that_the_model_reads() {
    let invalid = ScriptedResponse::Response(ModelResponse {
        tool_calls: vec![RequestedCall {
            name: "list_jobs".to_owned(),
            arguments: "{\"name\": ".to_owned(),
            ..RequestedCall::default()
        }],
        ..ModelResponse::default()
    });
    let script = vec![
        calls("drop_everything", &json!({})),
        calls("list_jobs", &json!({ "nam": 1 })),
        calls("list_jobs", &json!({ "name": 1 })),
        calls("get_job", &json!({ "job_id": "none" })),
        invalid,
        says("I give up."),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read], "x").await;
    let outputs = outputs(&result);
    assert!(outputs.iter().all(|output| output.is_error));
    let starts = [
        "there is no tool of that name; the tools are run_python",
        "list_jobs has no argument \"nam\"",
        "the arguments do not fit:\narguments.name: Input should be a valid string",
        "job not found",
        "the arguments are not a JSON object",
    ];
    for (output, start) in outputs.iter().zip(starts) {
        assert!(output.text.starts_with(start), "{}", output.text);
    }
}

#[tokio::test]
async fn a_run_without_the_write_scope_is_offered_no_tool_that_writes() {
    let scripted = Scripted::new(vec![says("x"), says("x")]).await;
    scripted.result(&[Read], "x").await;
    scripted.result(&[Read, Write], "x").await;
    let offered = |index: usize| -> Vec<String> {
        let requests = scripted.model.requests();
        requests[index]
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    };
    let writing = [
        "write_data",
        "create_job",
        "update_job",
        "run_job",
        "train_model",
        "cancel_training",
        "send_notification",
    ];
    for tool in writing {
        assert!(!offered(0).contains(&tool.to_owned()), "{tool}");
        assert!(offered(1).contains(&tool.to_owned()), "{tool}");
    }
}

#[tokio::test]
async fn a_forced_call_of_a_tool_that_writes_is_refused() {
    let script = vec![
        calls("write_data", &experiment("forced", false)),
        calls("create_job", &json!({ "name": "forced", "code": "1" })),
        calls("send_notification", &json!({ "title": "forced" })),
        says("x"),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read], "x").await;
    for output in outputs(&result) {
        assert!(
            output.is_error && output.text.contains("lacks the write scope"),
            "{}",
            output.text
        );
    }
    assert_eq!(executions(&scripted).await, 0);
}

/// A tool that revokes the key of its caller.
struct Revoke;

#[async_trait]
impl Tool for Revoke {
    fn name(&self) -> &'static str {
        "revoke"
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: "Revokes the key of this run.".to_owned(),
            schema: Map::new(),
        }
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, context: &ToolContext<'_>, _input: &ToolInput) -> ToolOutput {
        let (services, actor) = (context.services, context.actor);
        let now = services.clock.now();
        let revoked = services
            .api_keys
            .revoke(actor.organization, actor.api_key, now);
        revoked.await.unwrap();
        ToolOutput::result("{}".to_owned())
    }
}

#[tokio::test]
async fn a_key_that_is_revoked_during_a_run_calls_no_further_tool() {
    let script = vec![
        calls("revoke", &json!({})),
        calls("revoke", &json!({})),
        says("x"),
    ];
    let mut scripted = Scripted::new(script).await;
    scripted.agent.tools = ToolRegistry::new(vec![Arc::new(Revoke)]);
    let result = scripted.result(&[Read, Write], "x").await;
    let outputs = outputs(&result);
    assert!(!outputs[0].is_error, "{:?}", outputs[0]);
    assert!(outputs[1].is_error, "{:?}", outputs[1]);
    assert_eq!(outputs[1].text, InvalidCredential::Key.to_string());
}

#[tokio::test]
async fn jobs_are_created_and_changed_with_the_rights_of_the_caller() {
    let script = vec![
        calls(
            "create_job",
            &json!({ "name": "count", "code": "print(1)" }),
        ),
        calls("create_job", &json!({ "name": "broken", "code": "print(" })),
        calls("create_job", &json!({ "name": "two\nlines", "code": "" })),
        calls("create_job", &json!({ "name": "empty", "code": "" })),
        says("x"),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read, Write], "x").await;
    let outputs = outputs(&result);
    let created: Value = serde_json::from_str(&outputs[0].text).unwrap();
    let id = created["id"].clone();
    assert_eq!(created["effects"], json!([]));
    assert!(
        outputs[1].text.starts_with("the code is refused: line 1"),
        "{}",
        outputs[1].text
    );
    // As over HTTP: one line for a name, any Python for a script.
    assert!(outputs[2].is_error, "{:?}", outputs[2]);
    assert!(!outputs[3].is_error, "{:?}", outputs[3]);
    scripted.model.then(calls(
        "update_job",
        &json!({ "job_id": id, "code": "print(2)", "archived": true }),
    ));
    scripted
        .model
        .then(calls("get_job", &json!({ "job_id": id })));
    scripted.model.then(calls(
        "update_job",
        &json!({ "job_id": id, "archived": false }),
    ));
    scripted
        .model
        .then(calls("run_job", &json!({ "job_id": id })));
    scripted.model.then(says("x"));
    let result = scripted.result(&[Read, Write], "x").await;
    let outputs: Vec<Value> = self::outputs(&result)
        .iter()
        .map(|output| serde_json::from_str(&output.text).unwrap())
        .collect();
    assert_eq!(
        (&outputs[1]["archived"], &outputs[1]["code"]),
        (&json!(true), &json!("print(2)"))
    );
    let effects: Vec<&Value> = outputs.iter().map(|output| &output["effects"]).collect();
    let archived = json!([JOB_ARCHIVED, SCRIPT_REPLACED]);
    assert_eq!(
        effects,
        [&archived, &Value::Null, &json!([]), &json!([RUN_QUEUED])]
    );
}

#[tokio::test]
async fn every_tool_is_described() {
    let tools = labdata_operations::tools::all();
    let actor = Lab::new().await.actor(&[Read, Write]);
    let definitions = tools.definitions(&actor);
    assert_eq!(definitions.len(), 20);
    for tool in &*definitions {
        assert!(tool.description.len() > 20, "{}", tool.name);
        assert_eq!(tool.schema["type"], "object");
        assert_eq!(tool.schema["additionalProperties"], false);
        let text = Value::from(tool.schema.clone()).to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs"), "{text}");
        let properties = tool.schema["properties"].as_object().unwrap();
        for (name, schema) in properties {
            assert!(schema.get("description").is_some(), "{}.{name}", tool.name);
        }
    }
}
