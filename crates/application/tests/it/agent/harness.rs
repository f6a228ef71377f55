//! The agent on a scripted model, and helpers of its tests.

use std::sync::Arc;

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};
use labdata_application::{
    agent::{Agent, AgentError, AgentEvent, AgentResult, NoUsageObserver, RunAgent, run_agent},
    executions::list_executions::list_executions,
};
use labdata_domain::{
    agent::{AgentLimits, ModelChoice, ModelResponse, RequestedCall, ToolOutput},
    page::PageRequest,
    people::{
        ApiKey, ApiKeyHash,
        actor::Actor,
        scope::Scope::{self, Read},
    },
};
use labdata_memory::{
    InMemoryAgentRunRepository, InMemoryChatRepository, ScriptedModel, ScriptedResponse,
};
use labdata_ports::{PortError, executions::ExecutionFilter};
use serde_json::{Value, json};
use time::Duration;

use crate::lab::Lab;

/// The agent on a scripted model.
pub(super) struct Scripted {
    pub(super) lab: Lab,
    pub(super) agent: Agent,
    pub(super) model: ScriptedModel,
}

impl Scripted {
    pub(super) async fn new(script: Vec<ScriptedResponse>) -> Self {
        let lab = Lab::new().await;
        let model = ScriptedModel::new(script);
        let agent = agent(&lab, &model);
        Self { lab, agent, model }
    }

    pub(super) async fn events(&self, actor: &Actor, command: RunAgent) -> Vec<AgentEvent> {
        self.begin(actor, command).await.unwrap().collect().await
    }

    /// Begins a run, whose work is a task. No lease is renewed unless the run is cancelled.
    pub(super) async fn begin(
        &self,
        actor: &Actor,
        command: RunAgent,
    ) -> Result<BoxStream<'static, AgentEvent>, AgentError> {
        self.begin_with(actor, command, |_| future::pending().boxed())
            .await
    }

    /// Begins a run whose pauses and timers are those of `pause`.
    pub(super) async fn begin_with(
        &self,
        actor: &Actor,
        command: RunAgent,
        pause: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Result<BoxStream<'static, AgentEvent>, AgentError> {
        self.add_key(actor).await;
        let run = run_agent(&self.lab.services, &self.agent, actor, command).await?;
        tokio::spawn(async move { run.work.finish(&pause, std::future::pending()).await });
        Ok(run.events)
    }

    /// Stores the key of the caller, unless it is stored.
    async fn add_key(&self, actor: &Actor) {
        let key = ApiKey {
            id: actor.api_key,
            organization: actor.organization,
            user: actor.user,
            name: "of a test".to_owned(),
            prefix: actor.api_key.to_string(),
            hash: ApiKeyHash([0; 32]),
            scopes: actor.scopes,
            tables: None,
            execution: None,
            created_at: self.lab.services.clock.now(),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        match self.lab.services.api_keys.add(&key).await {
            Ok(()) | Err(PortError::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs a prompt with these scopes; returns the result.
    pub(super) async fn result(&self, scopes: &[Scope], prompt: &str) -> AgentResult {
        let actor = self.lab.actor(scopes);
        result(self.events(&actor, prompted(prompt)).await)
    }
}

/// The agent of a lab.
pub(super) fn agent(lab: &Lab, model: &ScriptedModel) -> Agent {
    Agent {
        model: Arc::new(model.clone()),
        chats: Arc::new(InMemoryChatRepository::new(&lab.memory)),
        tools: labdata_operations::tools::all(),
        models: ModelChoice {
            default: Some("small".to_owned()),
            allowed: vec!["large".to_owned()],
        },
        limits: AgentLimits::default(),
        runs: Arc::new(InMemoryAgentRunRepository::new(&lab.memory)),
        observer: Arc::new(NoUsageObserver),
    }
}

pub(super) fn prompted(prompt: &str) -> RunAgent {
    RunAgent {
        prompt: prompt.to_owned(),
        ..RunAgent::default()
    }
}

pub(super) fn result(mut events: Vec<AgentEvent>) -> AgentResult {
    match events.pop() {
        Some(AgentEvent::Result(result)) => *result,
        other => panic!("the run ended with {other:?}"),
    }
}

pub(super) fn says(text: &str) -> ScriptedResponse {
    ScriptedResponse::Response(ModelResponse {
        text: text.to_owned(),
        ..ModelResponse::default()
    })
}

pub(super) fn calls(tool: &str, arguments: &Value) -> ScriptedResponse {
    ScriptedResponse::Response(ModelResponse {
        tool_calls: vec![RequestedCall {
            id: "call".to_owned(),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
            provider_data: None,
        }],
        ..ModelResponse::default()
    })
}

/// The outputs of a result's tool calls.
pub(super) fn outputs(result: &AgentResult) -> Vec<&ToolOutput> {
    result.run.tool_calls().map(|call| &call.output).collect()
}

pub(super) fn experiment(name: &str, dry_run: bool) -> Value {
    json!({ "tables": [{ "table": "experiment", "rows": [{ "name": name }] }], "dry_run": dry_run })
}

pub(super) fn name(event: &AgentEvent) -> &'static str {
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

/// Number of executions of the organization.
pub(super) async fn executions(scripted: &Scripted) -> usize {
    let page = PageRequest {
        limit: None,
        after: None,
    };
    let actor = scripted.lab.actor(&[Read]);
    let filter = ExecutionFilter::default();
    let list = list_executions(&scripted.lab.services, &actor, &filter, page).await;
    list.unwrap().items.len()
}
