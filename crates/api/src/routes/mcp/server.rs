//! Answers of the Model Context Protocol.

use std::sync::Arc;

use actix_web::web::Data;
use labdata_application::agent::call_tool;
use labdata_domain::{
    agent::{ASSISTANT_INSTRUCTIONS, ToolCall, ToolInput, ToolOutput},
    keys::actor::Actor,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, JsonObject,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};

use super::{resources, tools};
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
        let App { ports, agent, .. } = &**self.app;
        tokio::select! {
            output = call_tool(ports, agent, &self.actor, &call) => Ok(output),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("labdata", env!("CARGO_PKG_VERSION")))
            .with_instructions(ASSISTANT_INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let allowed = self.app.agent.tools.allowed(&self.actor);
        let tools = allowed.map(tools::definition).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = request.arguments.unwrap_or_default();
        let output = self.call(&context, &request.name, input).await?;
        Ok(tools::result(&output, &self.app.agent.limits).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        resources::list(&self.app.ports, &self.actor, cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(self, &context, request.uri).await?;
        Ok(contents.into())
    }
}
