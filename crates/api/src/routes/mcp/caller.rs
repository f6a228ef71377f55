//! The caller of one request, and its calls of tools.

use std::sync::Arc;

use actix_web::web::Data;
use labdata_application::agent::call_tool;
use labdata_domain::{
    agent::{ToolCall, ToolInput, ToolOutput},
    people::actor::Actor,
};
use labdata_operations::Platform;
use rmcp::{ErrorData, RoleServer, model::JsonObject, service::RequestContext};

use crate::app::App;

/// The platform for one request of an assistant.
#[derive(Clone)]
pub(super) struct McpServer {
    pub(super) app: Data<App>,
    pub(super) actor: Arc<Actor>,
}

impl McpServer {
    /// Calls a tool, unless the client leaves before its end.
    pub(super) async fn call(
        &self,
        context: &RequestContext<RoleServer>,
        name: &str,
        input: JsonObject,
    ) -> Result<ToolOutput, ErrorData> {
        let call = ToolCall {
            id: context.id.to_string(),
            name: name.to_owned(),
            input: ToolInput::Object(input),
            provider_data: None,
        };
        let Platform { services, agent } = &*self.app.platform;
        tokio::select! {
            output = call_tool(services, agent, &self.actor, &call) => Ok(output),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
        }
    }
}
