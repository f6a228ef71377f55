//! Runs of the agent on a scripted model.

use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use labdata_application::{
    Error,
    agent::{
        Agent, AgentError, AgentEvent, AgentResult, RunAgent, RunSlots,
        chats::get_chat,
        run_agent,
        tools::{ToolRegistry, all_tools},
    },
    data::revert_execution::revert_execution,
    executions::{get_execution::get_execution, list_executions::list_executions},
};
use labdata_domain::{
    agent::{
        AgentLimits, BrokenStream, ChatRole, EndReason, Message, ModelAnswer, ModelChoice,
        ModelFailure, RequestedCall, ToolOutput,
    },
    ids::ChatId,
    keys::{
        actor::Actor,
        scope::Scope::{self, Read, Write},
    },
    page::PageRequest,
};
use labdata_memory::{InMemoryChatRepository, ScriptedAnswer, ScriptedModel};
use labdata_ports::executions::ExecutionFilter;
use serde_json::{Value, json};
use time::Duration;

use crate::lab::Lab;

/// The agent on a scripted model.
struct Scripted {
    lab: Lab,
    agent: Agent,
    model: ScriptedModel,
}

impl Scripted {
    async fn new(script: Vec<ScriptedAnswer>) -> Self {
        let lab = Lab::new().await;
        let model = ScriptedModel::new(script);
        let agent = Agent {
            model: Arc::new(model.clone()),
            chats: Arc::new(InMemoryChatRepository::new(&lab.memory)),
            tools: all_tools(),
            models: ModelChoice {
                default: Some("small".to_owned()),
                allowed: vec!["large".to_owned()],
            },
            limits: AgentLimits::default(),
            slots: RunSlots::default(),
        };
        Self { lab, agent, model }
    }

    async fn events(&self, actor: &Actor, command: RunAgent) -> Vec<AgentEvent> {
        let events = run_agent(&self.lab.ports, &self.agent, actor, command).await;
        events.unwrap().collect().await
    }

    /// Runs a prompt with these scopes; returns the result.
    async fn result(&self, scopes: &[Scope], prompt: &str) -> AgentResult {
        let actor = self.lab.actor(scopes);
        result(self.events(&actor, prompted(prompt)).await)
    }
}

fn prompted(prompt: &str) -> RunAgent {
    RunAgent {
        prompt: prompt.to_owned(),
        ..RunAgent::default()
    }
}

fn result(mut events: Vec<AgentEvent>) -> AgentResult {
    match events.pop() {
        Some(AgentEvent::Result(result)) => *result,
        other => panic!("the run ended with {other:?}"),
    }
}

fn says(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Answer(ModelAnswer {
        text: text.to_owned(),
        ..ModelAnswer::default()
    })
}

fn calls(tool: &str, arguments: &Value) -> ScriptedAnswer {
    ScriptedAnswer::Answer(ModelAnswer {
        tool_calls: vec![RequestedCall {
            id: "call".to_owned(),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
            provider_data: None,
        }],
        ..ModelAnswer::default()
    })
}

/// The outputs of a result's tool calls.
fn outputs(result: &AgentResult) -> Vec<&ToolOutput> {
    result.run.tool_calls().map(|call| &call.output).collect()
}

fn experiment(name: &str, dry_run: bool) -> Value {
    json!({ "tables": [{ "table": "experiment", "rows": [{ "name": name }] }], "dry_run": dry_run })
}

fn name(event: &AgentEvent) -> &'static str {
    match event {
        AgentEvent::RunStarted { .. } => "run_started",
        AgentEvent::TextDelta(_) => "text_delta",
        AgentEvent::ToolCall(_) => "tool_call",
        AgentEvent::ToolResult { .. } => "tool_result",
        AgentEvent::Usage(_) => "usage",
        AgentEvent::Result(_) => "result",
        AgentEvent::Error(_) => "error",
    }
}

#[tokio::test]
async fn a_run_streams_its_events_in_order() {
    let script = vec![calls("list_jobs", &json!({})), says("There are none.")];
    let scripted = Scripted::new(script).await;
    let events = scripted
        .events(&scripted.lab.actor(&[Read]), prompted("Jobs?"))
        .await;
    let names: Vec<&str> = events.iter().map(name).collect();
    let expected = [
        "run_started",
        "usage",
        "tool_call",
        "tool_result",
        "text_delta",
        "text_delta",
        "text_delta",
        "usage",
        "result",
    ];
    assert_eq!(names, expected);
    let result = result(events);
    assert_eq!(result.run.output, "There are none.");
    assert_eq!((result.model.as_str(), result.chat_id), ("small", None));
    assert_eq!(outputs(&result)[0].text, "{\"jobs\":[],\"more\":false}");
}

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
    let invalid = ScriptedAnswer::Answer(ModelAnswer {
        tool_calls: vec![RequestedCall {
            name: "list_jobs".to_owned(),
            arguments: "{\"name\": ".to_owned(),
            ..RequestedCall::default()
        }],
        ..ModelAnswer::default()
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
        "there is no tool of that name; the tools are get_schema",
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

async fn executions(scripted: &Scripted) -> usize {
    let page = PageRequest {
        limit: None,
        after: None,
    };
    let actor = scripted.lab.actor(&[Read]);
    let filter = ExecutionFilter::default();
    let list = list_executions(&scripted.lab.ports, &actor, &filter, page).await;
    list.unwrap().items.len()
}

#[tokio::test]
async fn the_writes_of_a_run_fall_under_one_execution_that_can_be_reverted() {
    let script = vec![
        calls("write_data", &experiment("first", true)),
        calls("write_data", &experiment("first", false)),
        calls("write_data", &experiment("second", false)),
        says("Done."),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read, Write], "x").await;
    let ids: Vec<Value> = outputs(&result)
        .iter()
        .map(|output| {
            assert!(!output.is_error, "{}", output.text);
            let output: Value = serde_json::from_str(&output.text).unwrap();
            output["job_execution_id"].clone()
        })
        .collect();
    assert_eq!((&ids[0], &ids[1]), (&Value::Null, &ids[2]));
    let id = ids[1].as_str().unwrap().parse().unwrap();
    let (ports, actor) = (&scripted.lab.ports, scripted.lab.actor(&[Read, Write]));
    let execution = get_execution(ports, &actor, id).await.unwrap();
    assert_eq!(execution.state.as_str(), "completed");
    assert_eq!(executions(&scripted).await, 1);
    let report = revert_execution(ports, &actor, id).await.unwrap();
    assert_eq!(report.deleted_count, 2);
}

#[tokio::test]
async fn a_write_with_problems_writes_nothing_and_opens_no_execution() {
    let script = vec![
        calls(
            "write_data",
            &json!({ "tables": [{ "table": "no_such", "rows": [{}] }] }),
        ),
        says("x"),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read, Write], "x").await;
    let text = &outputs(&result)[0].text;
    assert!(
        text.starts_with("nothing was written:\ntables[0]"),
        "{text}"
    );
    assert_eq!(executions(&scripted).await, 0);
}

#[tokio::test]
async fn jobs_are_created_and_changed_with_the_rights_of_the_caller() {
    let script = vec![
        calls(
            "create_job",
            &json!({ "name": "count", "code": "print(1)" }),
        ),
        calls("create_job", &json!({ "name": "broken", "code": "print(" })),
        says("x"),
    ];
    let scripted = Scripted::new(script).await;
    let result = scripted.result(&[Read, Write], "x").await;
    let outputs = outputs(&result);
    let created: Value = serde_json::from_str(&outputs[0].text).unwrap();
    let id = created["job"]["id"].clone();
    assert!(
        outputs[1].text.starts_with("the code is refused: line 1"),
        "{}",
        outputs[1].text
    );
    scripted.model.then(calls(
        "update_job",
        &json!({ "job_id": id, "archived": true }),
    ));
    scripted
        .model
        .then(calls("get_job", &json!({ "job_id": id })));
    scripted.model.then(says("x"));
    let result = scripted.result(&[Read, Write], "x").await;
    let shown: Value = serde_json::from_str(&self::outputs(&result)[1].text).unwrap();
    assert_eq!(
        (&shown["job"]["archived"], &shown["code"]),
        (&json!(true), &json!("print(1)"))
    );
}

#[tokio::test]
async fn a_failure_of_the_model_is_the_last_event() {
    let broken = ModelFailure::Broken(BrokenStream::NoEnd);
    let script = vec![ScriptedAnswer::Fail("Half of".to_owned(), broken.clone())];
    let scripted = Scripted::new(script).await;
    let events = scripted
        .events(&scripted.lab.actor(&[Read]), prompted("x"))
        .await;
    assert!(
        matches!(events.last(), Some(AgentEvent::Error(AgentError::Model(failure))) if *failure == broken)
    );
    assert_eq!(
        events
            .iter()
            .map(name)
            .filter(|name| *name == "text_delta")
            .count(),
        2
    );
}

#[tokio::test]
async fn a_run_whose_model_fails_closes_the_execution_of_its_writes() {
    let refused = ModelFailure::Timeout(60);
    let script = vec![
        calls("write_data", &experiment("kept", false)),
        ScriptedAnswer::Refuse(refused),
    ];
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read, Write]);
    let events = scripted.events(&actor, prompted("x")).await;
    assert_eq!(name(events.last().unwrap()), "error");
    let page = PageRequest {
        limit: None,
        after: None,
    };
    let filter = ExecutionFilter::default();
    let list = list_executions(&scripted.lab.ports, &actor, &filter, page)
        .await
        .unwrap();
    let states: Vec<&str> = list
        .items
        .iter()
        .map(|execution| execution.state.as_str())
        .collect();
    assert_eq!(states, ["failed"]);
}

#[tokio::test]
async fn a_run_ends_at_its_steps_with_what_it_has() {
    let script = (0..3).map(|_| calls("list_jobs", &json!({}))).collect();
    let mut scripted = Scripted::new(script).await;
    scripted.agent.limits.steps = 3;
    let result = scripted.result(&[Read], "x").await;
    assert_eq!(result.run.reason, EndReason::Steps(3));
    assert_eq!(outputs(&result).len(), 2);
}

#[tokio::test]
async fn a_run_without_time_ends_before_the_model_is_asked() {
    let mut scripted = Scripted::new(vec![says("late")]).await;
    scripted.agent.limits.duration = Duration::ZERO;
    let result = scripted.result(&[Read], "x").await;
    assert_eq!(result.run.reason, EndReason::Duration(Duration::ZERO));
    assert_eq!(scripted.model.requests(), []);
}

#[tokio::test]
async fn a_run_is_saved_as_a_chat_and_continued() {
    let script = vec![
        calls("list_jobs", &json!({})),
        says("None."),
        says("Still none."),
    ];
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read]);
    let command = RunAgent {
        save: true,
        ..prompted("Which jobs?\nAll of them.")
    };
    let first = result(scripted.events(&actor, command).await);
    let id = first.chat_id.unwrap();
    let command = RunAgent {
        chat_id: Some(id),
        ..prompted("And now?")
    };
    let second = result(scripted.events(&actor, command).await);
    assert_eq!(second.chat_id, Some(id));
    let saved = get_chat(&scripted.agent, &actor, id).await.unwrap();
    assert_eq!(saved.chat.title, "Which jobs?");
    let roles: Vec<ChatRole> = saved.messages.iter().map(|message| message.role).collect();
    let (user, assistant) = (ChatRole::User, ChatRole::Assistant);
    assert_eq!(roles, [user, assistant, assistant, user, assistant]);
    let asked = scripted.model.requests().pop().unwrap().messages;
    let kinds: Vec<&str> = asked
        .iter()
        .map(|message| match message {
            Message::User(_) => "user",
            Message::Assistant { .. } => "assistant",
            Message::ToolResult { .. } => "tool",
        })
        .collect();
    assert_eq!(kinds, ["user", "assistant", "tool", "assistant", "user"]);
}

#[tokio::test]
async fn requests_that_make_no_sense_begin_no_run() {
    let scripted = Scripted::new(Vec::new()).await;
    let begin = async |scopes: &[Scope], command: RunAgent| {
        let actor = scripted.lab.actor(scopes);
        let begun = run_agent(&scripted.lab.ports, &scripted.agent, &actor, command).await;
        begun.err().unwrap()
    };
    let refused = begin(&[Write], prompted("x")).await;
    assert!(matches!(refused, AgentError::Platform(Error::Forbidden(_))));
    let refused = begin(&[Read], prompted(" ")).await;
    assert!(matches!(refused, AgentError::Platform(Error::Invalid(_))));
    let other = RunAgent {
        model: Some("other".to_owned()),
        ..prompted("x")
    };
    assert!(matches!(
        begin(&[Read], other).await,
        AgentError::Platform(Error::Invalid(_))
    ));
    let unknown = RunAgent {
        chat_id: Some(ChatId::new(scripted.lab.ports.ids.next_id())),
        ..prompted("x")
    };
    assert!(matches!(
        begin(&[Read], unknown).await,
        AgentError::Platform(Error::NotFound(_))
    ));
    assert_eq!(scripted.model.requests(), []);
}

#[tokio::test]
async fn without_a_model_the_missing_setting_is_named() {
    let mut scripted = Scripted::new(Vec::new()).await;
    scripted.agent.models = ModelChoice::default();
    let actor = scripted.lab.actor(&[Read]);
    let begun = run_agent(&scripted.lab.ports, &scripted.agent, &actor, prompted("x")).await;
    let failure = begun.err().unwrap().to_string();
    assert!(failure.contains("LABDATA_LLM_MODEL"), "{failure}");
}

#[tokio::test]
async fn an_organization_has_four_runs_at_once_and_a_dropped_one_is_over() {
    let script = (0..5)
        .map(|_| ScriptedAnswer::Hang("I think ".to_owned()))
        .collect();
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read]);
    let begin =
        async || run_agent(&scripted.lab.ports, &scripted.agent, &actor, prompted("x")).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        let mut run = begin().await.unwrap();
        assert!(run.next().await.is_some());
        runs.push(run);
    }
    assert!(matches!(
        begin().await.err(),
        Some(AgentError::TooManyRuns(_))
    ));
    drop(runs.pop());
    let mut run = begin().await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.push(name(&run.next().await.unwrap()));
    }
    assert!(run.next().now_or_never().is_none(), "the model hangs");
    assert_eq!(
        seen,
        ["run_started", "text_delta", "text_delta", "text_delta"]
    );
}

#[tokio::test]
async fn a_long_output_is_cut_and_says_so() {
    let script = vec![calls("get_schema", &json!({})), says("x")];
    let mut scripted = Scripted::new(script).await;
    scripted.agent.limits.output_bytes = 300;
    scripted.agent.limits.model_output_bytes = 100;
    let events = scripted
        .events(&scripted.lab.actor(&[Read]), prompted("x"))
        .await;
    let cut = events.iter().find_map(|event| match event {
        AgentEvent::ToolResult {
            output,
            is_truncated,
            ..
        } => Some((output.text.len(), *is_truncated)),
        _ => None,
    });
    assert_eq!(cut, Some((300, true)));
    let shown = scripted
        .model
        .requests()
        .pop()
        .unwrap()
        .messages
        .pop()
        .unwrap();
    assert!(
        matches!(shown, Message::ToolResult { output, .. } if output.contains("bytes are shown"))
    );
}

#[tokio::test]
async fn every_tool_is_described() {
    let tools: ToolRegistry = all_tools();
    let actor = Lab::new().await.actor(&[Read, Write]);
    let definitions = tools.definitions(&actor);
    assert_eq!(definitions.len(), 13);
    for tool in definitions {
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
