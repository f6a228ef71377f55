//! Limits of runs.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use labdata_application::agent::{
    AgentError, AgentEvent,
    get_usage::get_usage,
    tools::{Tool, ToolContext, ToolRegistry},
};
use labdata_domain::{
    agent::{
        CALL_OUT_OF_TIME, EndReason, Message, ModelResponse, RequestedCall, RunRefusal,
        TooManyRuns, ToolInput, ToolOutput, Usage,
    },
    people::scope::Scope::Read,
};
use labdata_memory::{FixedClock, ScriptedResponse};
use labdata_ports::agent::ToolDefinition;
use serde_json::{Map, json};
use time::Duration;
use tokio::sync::Semaphore;

use super::harness::{Scripted, calls, name, outputs, prompted, says};

/// A tool that takes a minute per call.
struct SlowTool(Arc<FixedClock>);

#[async_trait]
impl Tool for SlowTool {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: "Waits a minute.".to_owned(),
            schema: Map::new(),
        }
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, _context: &ToolContext<'_>, _input: &ToolInput) -> ToolOutput {
        self.0.advance(Duration::MINUTE);
        ToolOutput::result("waited".to_owned())
    }
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
async fn a_run_whose_time_ends_between_two_calls_makes_no_further_call() {
    let call = |id: &str| RequestedCall {
        id: id.to_owned(),
        name: "wait".to_owned(),
        arguments: "{}".to_owned(),
        provider_data: None,
    };
    let response = ScriptedResponse::Response(ModelResponse {
        text: "I wait.".to_owned(),
        tool_calls: vec![call("first"), call("second"), call("third")],
        ..ModelResponse::default()
    });
    let mut scripted = Scripted::new(vec![response, says("late")]).await;
    let clock = scripted.lab.clock.clone();
    scripted.agent.tools = ToolRegistry::new(vec![Arc::new(SlowTool(clock))]);
    scripted.agent.limits.duration = Duration::minutes(2);
    let actor = scripted.lab.actor(&[Read]);
    let mut events = scripted.events(&actor, prompted("x")).await;
    let Some(AgentEvent::Result(result)) = events.pop() else {
        panic!("the run ended with another event");
    };
    assert_eq!(result.run.reason, EndReason::Duration(Duration::minutes(2)));
    assert!(
        result
            .run
            .output
            .starts_with("I wait.\n\n(The run ended after 120 s"),
        "{}",
        result.run.output
    );
    let made: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolCall(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(made, ["first", "second"]);
    let outputs = outputs(&result);
    let texts: Vec<(&str, bool)> = outputs
        .iter()
        .map(|output| (output.text.as_str(), output.is_error))
        .collect();
    let not_called = ("the tool was not called", true);
    assert_eq!(texts, [("waited", false), ("waited", false), not_called]);
    assert_eq!(scripted.model.requests().len(), 1);
}

/// A tool that never returns.
struct StuckTool;

#[async_trait]
impl Tool for StuckTool {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: "Waits.".to_owned(),
            schema: Map::new(),
        }
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, _context: &ToolContext<'_>, _input: &ToolInput) -> ToolOutput {
        std::future::pending().await
    }
}

/// Begins a run of a minute, reads its events until one of that name, lets the timer of the run go
/// off, and returns the last event.
async fn end_of_time(scripted: &Scripted, after: &str) -> AgentEvent {
    let timer = Arc::new(Semaphore::new(0));
    let actor = scripted.lab.actor(&[Read]);
    let waits = Arc::clone(&timer);
    let events = scripted.begin_with(&actor, prompted("x"), move |time| {
        let waits = Arc::clone(&waits);
        async move {
            // The lease's pauses are shorter.
            if time == Duration::MINUTE {
                drop(waits.acquire().await);
            } else {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    });
    let mut events = events.await.unwrap();
    while name(&events.next().await.unwrap()) != after {}
    timer.add_permits(1);
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    last.unwrap()
}

#[tokio::test]
async fn a_run_ends_at_its_time_while_the_provider_sends_nothing_of_its_response() {
    let mut scripted = Scripted::new(vec![ScriptedResponse::Hang("I".to_owned())]).await;
    scripted.agent.limits.duration = Duration::MINUTE;
    let AgentEvent::Result(result) = end_of_time(&scripted, "text_delta").await else {
        panic!("the run ended with another event");
    };
    assert_eq!(result.run.reason, EndReason::Duration(Duration::MINUTE));
    assert!(
        result
            .run
            .output
            .starts_with("I\n\n(The run ended after 60 s")
    );
}

#[tokio::test]
async fn a_run_ends_at_its_time_while_a_tool_works() {
    let mut scripted = Scripted::new(vec![calls("wait", &json!({})), says("late")]).await;
    scripted.agent.limits.duration = Duration::MINUTE;
    scripted.agent.tools = ToolRegistry::new(vec![Arc::new(StuckTool)]);
    let AgentEvent::Result(result) = end_of_time(&scripted, "tool_call").await else {
        panic!("the run ended with another event");
    };
    assert_eq!(result.run.reason, EndReason::Duration(Duration::MINUTE));
    let texts: Vec<_> = outputs(&result).iter().map(|it| it.text.clone()).collect();
    assert_eq!(texts, [CALL_OUT_OF_TIME]);
}

#[tokio::test]
async fn an_organization_has_four_runs_at_once_and_a_dropped_one_is_over() {
    let script = (0..5)
        .map(|_| ScriptedResponse::Hang("I think ".to_owned()))
        .collect();
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read]);
    let mut runs = Vec::new();
    for _ in 0..4 {
        let mut run = scripted.begin(&actor, prompted("x")).await.unwrap();
        assert!(run.next().await.is_some());
        runs.push(run);
    }
    let refused = scripted.begin(&actor, prompted("x")).await.err();
    let expected = RunRefusal::TooMany(TooManyRuns(4));
    assert!(matches!(refused, Some(AgentError::Refused(refusal)) if refusal == expected));
    drop(runs.pop());
    let mut run = loop {
        match scripted.begin(&actor, prompted("x")).await {
            Ok(run) => break run,
            Err(_) => tokio::task::yield_now().await,
        }
    };
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
async fn a_run_that_uses_the_budget_up_ends_and_the_next_is_refused() {
    let used = |input: u64| Usage {
        input_tokens: Some(input),
        output_tokens: Some(10),
        total_tokens: None,
    };
    let call = |input| {
        ScriptedResponse::Response(ModelResponse {
            text: "I look.".to_owned(),
            tool_calls: vec![RequestedCall {
                id: "call".to_owned(),
                name: "list_jobs".to_owned(),
                ..RequestedCall::default()
            }],
            usage: used(input),
            ..ModelResponse::default()
        })
    };
    let mut scripted = Scripted::new(vec![call(80), call(0), says("late")]).await;
    scripted.agent.limits.monthly_tokens = Some(100);
    let result = scripted.result(&[Read], "x").await;
    assert_eq!(result.run.reason, EndReason::Budget(100));
    assert!(
        result.run.output.contains("used its 100 tokens"),
        "{}",
        result.run.output
    );
    let texts: Vec<bool> = outputs(&result).iter().map(|it| it.is_error).collect();
    assert_eq!(texts, [false, true], "the second call was not made");
    assert_eq!(scripted.model.requests().len(), 2);

    let actor = scripted.lab.actor(&[Read]);
    let refused = scripted.begin(&actor, prompted("x")).await.err();
    assert!(matches!(
        refused,
        Some(AgentError::Refused(RunRefusal::BudgetUsed {
            tokens: 100,
            ..
        }))
    ));
    let usage = get_usage(&scripted.lab.services, &scripted.agent, &actor).await;
    assert_eq!(usage.unwrap().usage.total_tokens, Some(100));
    scripted.lab.clock.advance(Duration::days(31));
    assert!(scripted.begin(&actor, prompted("x")).await.is_ok());
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
    let displayed = scripted
        .model
        .requests()
        .pop()
        .unwrap()
        .messages
        .pop()
        .unwrap();
    assert!(
        matches!(displayed, Message::ToolResult { output, .. } if output.contains("bytes are given"))
    );
}
