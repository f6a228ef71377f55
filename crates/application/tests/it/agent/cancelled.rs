//! Runs that are cancelled.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, future};
use labdata_application::agent::{
    AgentEvent, AgentResult, RunAgent,
    cancel_run::cancel_run,
    chats::get_chat,
    tools::{Tool, ToolContext, ToolRegistry},
};
use labdata_domain::{
    agent::{EndReason, RENEW_EVERY, ToolInput, ToolOutput},
    executions::{
        AgentEnd, Execution, ExecutionState, FinalStatus,
        started_by::{StartedBy, Starter},
    },
    ids::{AgentRunId, ExecutionId, OrganizationId},
    page::{Page, PageRequest},
    people::scope::Scope::{Read, Write},
    work::NewRun,
};
use labdata_memory::ScriptedResponse;
use labdata_ports::{
    PortError,
    agent::ToolDefinition,
    executions::{
        CancelExecutionError, CloseExecutionError, ExecutionFilter, ExecutionRepository,
        OverdueExecution,
    },
};
use serde_json::{Map, json};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

use super::harness::{Scripted, calls, experiment, outputs, prompted, result};

/// A tool that never returns.
struct EndlessTool;

#[async_trait]
impl Tool for EndlessTool {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: "Waits forever.".to_owned(),
            schema: Map::new(),
        }
    }

    fn needs_write(&self) -> bool {
        false
    }

    async fn call(&self, _context: &ToolContext<'_>, _input: &ToolInput) -> ToolOutput {
        future::pending().await
    }
}

/// Cancels the run of that event.
async fn cancel(scripted: &Scripted, started: &AgentEvent) {
    let AgentEvent::RunStarted { run_id, .. } = started else {
        panic!("the run began with another event");
    };
    let actor = scripted.lab.actor(&[Read]);
    let cancelled = cancel_run(&scripted.agent, &actor, *run_id).await;
    cancelled.unwrap();
}

/// The result of a run that is cancelled after that event.
async fn cancelled_after(
    scripted: &Scripted,
    command: RunAgent,
    is_it: impl Fn(&AgentEvent) -> bool,
) -> AgentResult {
    let actor = scripted.lab.actor(&[Read, Write]);
    let mut events = scripted.begin(&actor, command).await.unwrap();
    let started = events.next().await.unwrap();
    while !is_it(&events.next().await.unwrap()) {}
    cancel(scripted, &started).await;
    result(events.collect().await)
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_the_model_writes_keeps_its_text() {
    let script = vec![ScriptedResponse::Hang("I think".to_owned())];
    let scripted = Scripted::new(script).await;
    let command = RunAgent {
        save: true,
        ..prompted("x")
    };
    let is_last =
        |event: &AgentEvent| matches!(event, AgentEvent::TextDelta(text) if text == " think");
    let result = cancelled_after(&scripted, command, is_last).await;
    assert_eq!(result.run.reason, EndReason::Cancelled);
    let expected = "I think\n\n(The run was cancelled. This is the state that it had reached.)";
    assert_eq!(result.run.output, expected);
    let actor = scripted.lab.actor(&[Read]);
    let chat = get_chat(
        &scripted.lab.services,
        &scripted.agent,
        &actor,
        result.chat_id.unwrap(),
    )
    .await;
    assert_eq!(chat.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn a_run_that_is_cancelled_during_a_call_says_so() {
    let mut scripted = Scripted::new(vec![calls("wait", &json!({}))]).await;
    scripted.agent.tools = ToolRegistry::new(vec![Arc::new(EndlessTool)]);
    let is_call = |event: &AgentEvent| matches!(event, AgentEvent::ToolCall(_));
    let result = cancelled_after(&scripted, prompted("x"), is_call).await;
    assert_eq!(result.run.reason, EndReason::Cancelled);
    let output = outputs(&result)[0];
    assert!(
        output.is_error && output.text.contains("cancelled"),
        "{output:?}"
    );
}

#[tokio::test]
async fn the_execution_of_a_cancelled_run_is_cancelled() {
    let script = vec![
        calls("write_data", &experiment("a", false)),
        ScriptedResponse::Hang("Now".to_owned()),
    ];
    let scripted = Scripted::new(script).await;
    let actor = scripted.lab.actor(&[Read, Write]);
    let mut events = scripted.begin(&actor, prompted("x")).await.unwrap();
    while !matches!(events.next().await.unwrap(), AgentEvent::TextDelta(_)) {}
    drop(events);
    let page = PageRequest {
        limit: None,
        after: None,
    };
    loop {
        let filter = ExecutionFilter::default();
        let executions = &scripted.lab.services.executions;
        let list = executions.list(actor.organization, &filter, page).await;
        let state = list.unwrap().items.remove(0).state;
        if matches!(state, ExecutionState::Cancelled { .. }) {
            break;
        }
        assert!(matches!(state, ExecutionState::Running { .. }), "{state:?}");
        tokio::task::yield_now().await;
    }
}

/// Executions that are stored at once and reported as stored only when the test permits it.
struct SlowExecutions {
    inner: Arc<dyn ExecutionRepository>,
    stored: Semaphore,
    reported: Semaphore,
}

#[async_trait]
impl ExecutionRepository for SlowExecutions {
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: StartedBy,
    ) -> Result<(), PortError> {
        self.inner.add(organization, execution, started_by).await?;
        self.stored.add_permits(1);
        self.reported.acquire().await.unwrap().forget();
        Ok(())
    }

    async fn queue(&self, of: OrganizationId, run: &NewRun) -> Result<Execution, PortError> {
        self.inner.queue(of, run).await
    }

    async fn starters(
        &self,
        of: OrganizationId,
        ids: &[ExecutionId],
    ) -> Result<BTreeMap<ExecutionId, Starter>, PortError> {
        self.inner.starters(of, ids).await
    }

    async fn get(&self, of: OrganizationId, id: ExecutionId) -> Result<Execution, PortError> {
        self.inner.get(of, id).await
    }

    async fn list(
        &self,
        of: OrganizationId,
        filter: &ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, PortError> {
        self.inner.list(of, filter, page).await
    }

    async fn close(
        &self,
        of: OrganizationId,
        id: ExecutionId,
        status: FinalStatus,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        self.inner.close(of, id, status, now).await
    }

    async fn end_agent(
        &self,
        of: OrganizationId,
        id: ExecutionId,
        end: &AgentEnd,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        self.inner.end_agent(of, id, end, now).await
    }

    async fn cancel(
        &self,
        of: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError> {
        self.inner.cancel(of, id, now).await
    }

    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError> {
        self.inner.fail_overdue(now, limit).await
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_its_execution_opens_leaves_none_running() {
    let mut scripted = Scripted::new(vec![calls("write_data", &experiment("a", false))]).await;
    let slow = Arc::new(SlowExecutions {
        inner: scripted.lab.services.executions.clone(),
        stored: Semaphore::new(0),
        reported: Semaphore::new(0),
    });
    scripted.lab.services.ports.repositories.executions = slow.clone();
    let actor = scripted.lab.actor(&[Read, Write]);
    let mut events = scripted.begin(&actor, prompted("x")).await.unwrap();
    let started = events.next().await.unwrap();
    slow.stored.acquire().await.unwrap().forget();
    cancel(&scripted, &started).await;
    while !matches!(events.next().await.unwrap(), AgentEvent::ToolResult { .. }) {}
    // The call is cancelled; only now does the store report what it has stored.
    slow.reported.add_permits(1);
    let result = result(events.collect().await);
    assert_eq!(result.run.reason, EndReason::Cancelled);
    let (filter, page) = (
        ExecutionFilter::default(),
        PageRequest {
            limit: None,
            after: None,
        },
    );
    let list = slow.list(actor.organization, &filter, page).await.unwrap();
    let states: Vec<_> = list.items.into_iter().map(|it| it.state).collect();
    assert!(
        matches!(states[..], [ExecutionState::Cancelled { .. }]),
        "{states:?}"
    );
}

/// The end of a run that hangs, after `lose` and the next renewals of its lease.
async fn end_after_loss(scripted: &Scripted, lose: impl AsyncFnOnce(AgentRunId)) -> EndReason {
    let renewals = Arc::new(Semaphore::new(0));
    let actor = scripted.lab.actor(&[Read]);
    let waits = Arc::clone(&renewals);
    let events = scripted.begin_with(&actor, prompted("x"), move |time| {
        let waits = Arc::clone(&waits);
        async move {
            if time != RENEW_EVERY {
                return future::pending().await;
            }
            waits.acquire().await.unwrap().forget();
        }
        .boxed()
    });
    let mut events = events.await.unwrap();
    let Some(AgentEvent::RunStarted { run_id, .. }) = events.next().await else {
        panic!("the run began with another event");
    };
    // It continues while its lease is held.
    renewals.add_permits(1);
    while !matches!(events.next().await, Some(AgentEvent::TextDelta(_))) {}
    lose(run_id).await;
    renewals.add_permits(10);
    result(events.collect().await).run.reason
}

#[tokio::test]
async fn a_run_whose_place_another_one_took_ends() {
    let script = vec![ScriptedResponse::Hang("I think".to_owned())];
    let scripted = Scripted::new(script).await;
    let organization = scripted.lab.actor(&[Read]).organization;
    let reason = end_after_loss(&scripted, async |id| {
        scripted.agent.runs.end(organization, id).await.unwrap();
    });
    assert_eq!(reason.await, EndReason::Cancelled);
}

#[tokio::test]
async fn a_run_that_is_not_in_progress_cannot_be_cancelled() {
    let scripted = Scripted::new(vec![]).await;
    let id = AgentRunId::new(scripted.lab.services.ids.next_id());
    let agent = &scripted.agent;
    let cancelled = cancel_run(agent, &scripted.lab.actor(&[Read]), id).await;
    assert_eq!(cancelled.unwrap_err().to_string(), "agent run not found");
    let refused = cancel_run(agent, &scripted.lab.actor(&[Write]), id).await;
    assert!(refused.unwrap_err().to_string().contains("read scope"));
}
