//! The registry of tools.

use std::{fmt, sync::Arc};

use labdata_domain::{
    agent::{ToolCall, ToolOutput, WriteNotAllowed},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::agent::ToolDefinition;

use super::{Tool, ToolContext, tool::failure};
use crate::people::check_key::check_key;

/// Tools by their names. Clones share them.
#[derive(Clone)]
pub struct ToolRegistry {
    tools: Arc<[Arc<dyn Tool>]>,
    /// Definitions of all tools, made once: the schemas are large, and each waiting run has them.
    all: Arc<[ToolDefinition]>,
    /// Definitions of the tools that need no write scope.
    reading: Arc<[ToolDefinition]>,
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.tools.iter().map(|tool| tool.name()))
            .finish()
    }
}

impl ToolRegistry {
    /// A registry of these tools.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let definitions = |may_write: bool| {
            let allowed = tools.iter().filter(|tool| may_write || !tool.needs_write());
            allowed.map(|tool| tool.definition()).collect()
        };
        Self {
            all: definitions(true),
            reading: definitions(false),
            tools: tools.into(),
        }
    }

    /// The tools that the caller may call.
    pub fn allowed<'a>(&'a self, actor: &'a Actor) -> impl Iterator<Item = &'a dyn Tool> {
        let tools = self.tools.iter().map(|tool| &**tool);
        tools.filter(|tool| tool.is_open_to(actor))
    }

    /// The tools that the caller may call, for a model.
    #[must_use]
    pub fn definitions(&self, actor: &Actor) -> Arc<[ToolDefinition]> {
        let is_of_person = actor.execution.is_none() && actor.rights.require_all_tables().is_ok();
        match (actor.scopes.contains(Scope::Write), is_of_person) {
            (true, true) => Arc::clone(&self.all),
            (true, false) => self.allowed(actor).map(Tool::definition).collect(),
            (false, _) => Arc::clone(&self.reading),
        }
    }

    /// Calls a tool. An unknown tool, arguments that do not fit, and a tool that the caller may not call
    /// are outputs that the model reads.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn call(&self, context: &ToolContext<'_>, call: &ToolCall) -> ToolOutput {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == call.name) else {
            return ToolOutput::error(self.unknown(context.actor));
        };
        // The model may ask for a tool that it was not offered.
        if tool.needs_write() && !context.actor.scopes.contains(Scope::Write) {
            return ToolOutput::error(WriteNotAllowed(call.name.clone()).to_string());
        }
        tool.call(context, &call.input).await
    }

    /// Calls a tool for a run, which continues after the request that began it: a key that has been revoked
    /// or has expired since then calls nothing.
    pub(crate) async fn call_in_run(
        &self,
        context: &ToolContext<'_>,
        call: &ToolCall,
    ) -> ToolOutput {
        // A run takes minutes, in which its key may be revoked or expire.
        match check_key(context.services, context.actor).await {
            Ok(actor) => {
                // The rights of the user may have changed, too.
                let context = ToolContext {
                    services: context.services,
                    actor: &actor,
                    agent: context.agent,
                    writes: context.writes,
                };
                self.call(&context, call).await
            }
            Err(error) => failure(&call.name, &error),
        }
    }

    fn unknown(&self, actor: &Actor) -> String {
        let names: Vec<&str> = self.allowed(actor).map(Tool::name).collect();
        format!(
            "there is no tool of that name; the tools are {}",
            names.join(", ")
        )
    }
}
