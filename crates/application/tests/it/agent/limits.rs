//! Limits of runs.

use futures::{FutureExt, StreamExt};
use labdata_application::agent::{AgentError, AgentEvent, run_agent};
use labdata_domain::{
    agent::{EndReason, Message},
    keys::scope::Scope::Read,
};
use labdata_memory::ScriptedAnswer;
use serde_json::json;
use time::Duration;

use super::harness::{Scripted, calls, name, outputs, prompted, says};

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
