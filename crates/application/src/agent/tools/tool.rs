//! Interface of a tool.

use async_trait::async_trait;
use labdata_domain::{
    agent::{ToolInput, ToolOutput},
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::agent::ToolDefinition;

use super::context::ToolContext;
use crate::Error;

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Its description for a model. The schema is that of an object without further properties.
    fn definition(&self) -> ToolDefinition;

    /// True if it changes something, for which the caller needs the write scope.
    fn needs_write(&self) -> bool;

    /// Returns true if it is offered to the caller. A tool that would always be refused to it is not.
    fn is_open_to(&self, actor: &Actor) -> bool {
        !self.needs_write() || actor.scopes.contains(Scope::Write)
    }

    /// True if it may change or remove what is there, rather than only add to it.
    fn is_destructive(&self) -> bool {
        false
    }

    /// Calls it. A failure is an output that the model reads, as that of arguments that do not fit.
    async fn call(&self, context: &ToolContext<'_>, input: &ToolInput) -> ToolOutput;
}

/// The output of a call that failed.
#[must_use]
pub fn failure(tool: &str, error: &Error) -> ToolOutput {
    ToolOutput::error(message(tool, error))
}

/// The message of an error as the model gets it. Internals are for the log only.
fn message(tool: &str, error: &Error) -> String {
    match error {
        Error::Problems(problems) => {
            let lines = problems.iter().map(|problem| match &problem.path {
                Some(path) => format!("{path}: {}", problem.message),
                None => problem.message.clone(),
            });
            let lines: Vec<String> = lines.collect();
            format!("nothing was written:\n{}", lines.join("\n"))
        }
        Error::Internal(cause) => {
            // The cause may hold details of the server, so the model does not get it.
            tracing::error!(tool, cause, "a tool of the agent failed");
            "internal error".to_owned()
        }
        other => other.to_string(),
    }
}
