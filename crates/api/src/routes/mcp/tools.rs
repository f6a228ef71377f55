//! Tools and their outputs in terms of the protocol.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use labdata_application::agent::tools::Tool;
use labdata_domain::agent::{AgentLimits, AttachmentType, ToolOutput};
use rmcp::model::{self, CallToolResult, ContentBlock, ToolAnnotations};

/// The definition of a tool.
pub(super) fn definition(tool: &dyn Tool) -> model::Tool {
    let annotations = ToolAnnotations::new()
        .read_only(!tool.needs_write())
        .destructive(tool.is_destructive())
        .open_world(false);
    let described = tool.definition();
    let mut definition = model::Tool::default();
    definition.name = Cow::Borrowed(tool.name());
    definition.description = Some(described.description.into());
    definition.input_schema = Arc::new(described.schema);
    definition.annotations = Some(annotations);
    definition
}

/// The result of a call: as much text as a model gets, and pictures.
pub(super) fn result(output: &ToolOutput, limits: &AgentLimits) -> CallToolResult {
    let mut content = vec![ContentBlock::text(output.for_model(limits))];
    for attachment in &output.attachments {
        if let (AttachmentType::Png, Some(bytes)) = (attachment.kind, &attachment.content) {
            let picture = STANDARD.encode(bytes);
            content.push(ContentBlock::image(picture, attachment.kind.media_type()));
        }
    }
    if output.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    }
}
