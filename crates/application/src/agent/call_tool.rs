//! Calls of tools outside of a run: an assistant elsewhere has the model and the loop.

use labdata_domain::{
    agent::{ToolCall, ToolOutput},
    people::actor::Actor,
};

use super::{
    Agent,
    tools::{RunWrites, ToolContext},
};
use crate::Services;

/// Calls a tool with the rights of the caller. Its writes fall under the execution of the key's session.
///
/// A call that is dropped is over: a write in progress is rolled back.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn call_tool(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
    call: &ToolCall,
) -> ToolOutput {
    let writes = RunWrites::of_session();
    let context = ToolContext {
        services,
        actor,
        agent,
        writes: &writes,
    };
    let output = agent.tools.call(&context, call).await;
    let mut attachment_bytes = agent.limits.attachment_bytes;
    output.within(&mut attachment_bytes).stored(&agent.limits)
}
