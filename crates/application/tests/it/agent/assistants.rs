//! Writes of assistants, which call tools outside of runs.

use labdata_application::{
    agent::{call_tool, end_write_sessions},
    executions::{cancel_execution::cancel_execution, get_execution::get_execution},
};
use labdata_domain::{
    agent::{ToolCall, ToolInput, WRITE_SESSION_PAUSE},
    executions::ExecutionState,
    ids::ExecutionId,
    people::{
        actor::Actor,
        scope::Scope::{Read, Write},
    },
};
use serde_json::Value;
use time::Duration;

use super::harness::{Scripted, executions, experiment};

/// Writes an experiment; returns the execution that is named in the answer.
async fn write(scripted: &Scripted, actor: &Actor, name: &str) -> ExecutionId {
    let Value::Object(input) = experiment(name, false) else {
        panic!("an object");
    };
    let call = ToolCall {
        id: "1".to_owned(),
        name: "write_data".to_owned(),
        input: ToolInput::Object(input),
        provider_data: None,
    };
    let output = call_tool(&scripted.lab.services, &scripted.agent, actor, &call).await;
    assert!(!output.is_error, "{}", output.text);
    let output: Value = serde_json::from_str(&output.text).unwrap();
    output
        .get("job_execution_id")
        .and_then(Value::as_str)
        .unwrap()
        .parse()
        .unwrap()
}

async fn state(scripted: &Scripted, actor: &Actor, id: ExecutionId) -> ExecutionState {
    let execution = get_execution(&scripted.lab.services, actor, id).await;
    execution.unwrap().state
}

#[tokio::test]
async fn writes_of_a_key_without_a_long_pause_fall_under_one_execution() {
    let scripted = Scripted::new(Vec::new()).await;
    let actor = scripted.lab.actor(&[Read, Write]);
    let other = scripted.lab.actor(&[Read, Write]);
    let first = write(&scripted, &actor, "a").await;
    scripted
        .lab
        .clock
        .advance(WRITE_SESSION_PAUSE - Duration::SECOND);
    assert_eq!(end_write_sessions(&scripted.lab.services).await.unwrap(), 0);
    assert_eq!(write(&scripted, &actor, "b").await, first);
    assert_ne!(write(&scripted, &other, "c").await, first);
    assert!(matches!(
        state(&scripted, &actor, first).await,
        ExecutionState::Running { .. }
    ));
    scripted
        .lab
        .clock
        .advance(WRITE_SESSION_PAUSE + Duration::SECOND);
    assert_eq!(end_write_sessions(&scripted.lab.services).await.unwrap(), 2);
    assert!(matches!(
        state(&scripted, &actor, first).await,
        ExecutionState::Completed { .. }
    ));
    assert_ne!(write(&scripted, &actor, "d").await, first);
}

#[tokio::test]
async fn a_session_whose_execution_has_ended_gets_another() {
    let scripted = Scripted::new(Vec::new()).await;
    let actor = scripted.lab.actor(&[Read, Write]);
    let first = write(&scripted, &actor, "a").await;
    cancel_execution(&scripted.lab.services, &actor, first)
        .await
        .unwrap();
    let second = write(&scripted, &actor, "b").await;
    assert_ne!(second, first);
    assert_eq!(write(&scripted, &actor, "c").await, second);
    assert_eq!(executions(&scripted).await, 2);
}
