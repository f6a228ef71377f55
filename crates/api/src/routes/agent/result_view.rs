//! The result of a run.

use labdata_application::agent::AgentResult;
use labdata_domain::{
    agent::{CompletedCall, ToolCall, ToolInput, Usage},
    ids::ChatId,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::output::output_json;

/// JSON that is passed on as it is.
type Json = Box<RawValue>;

/// Result of a run of the agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentRunResult)]
pub struct ResultView {
    /// The final answer. It says so if a limit ended the run.
    output: String,
    /// The model.
    model: String,
    /// The tool calls, in order.
    tool_calls: Vec<ToolCallView>,
    usage: UsageView,
    /// The chat that the run is saved in; null without one, and if saving failed.
    chat_id: Option<String>,
}

/// A tool call and its output.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentToolCall)]
pub struct ToolCallView {
    /// Id, unique within the run.
    tool_call_id: String,
    /// Name of the tool.
    tool_name: String,
    /// The arguments: an object, or the text of a model that wrote none.
    #[schema(value_type = serde_json::Value)]
    input: Json,
    /// The output: JSON where it is JSON and complete, else a text. `figures` of `run_python` have `name`,
    /// `media_type` and `size`; in a saved chat `file_id` and `url`, otherwise an image has `base64`. A
    /// Plotly figure is `figure` as well, except in chats that are read later.
    #[schema(value_type = serde_json::Value)]
    output: Json,
    /// True if the call failed; the output says why.
    is_error: bool,
}

/// Number of tokens of a run, as far as the provider reports it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = AgentUsage)]
#[expect(
    clippy::struct_field_names,
    reason = "the names are the specification's"
)]
pub struct UsageView {
    /// Tokens of the requests.
    input_tokens: Option<u64>,
    /// Tokens of the answers.
    output_tokens: Option<u64>,
    /// All tokens.
    total_tokens: Option<u64>,
}

impl From<AgentResult> for ResultView {
    fn from(result: AgentResult) -> Self {
        let calls = result.run.tool_calls();
        let calls = calls.map(|call| ToolCallView::of(call, result.chat_id));
        Self {
            tool_calls: calls.collect(),
            output: result.run.output,
            model: result.model,
            usage: result.run.usage.into(),
            chat_id: result.chat_id.map(|id| id.to_string()),
        }
    }
}

impl ToolCallView {
    /// A call of a run that is saved in that chat.
    pub(super) fn of(CompletedCall { call, output }: &CompletedCall, chat: Option<ChatId>) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: input(call),
            is_error: output.is_error,
            output: output_json(output, chat),
        }
    }
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
        }
    }
}

/// The arguments of a call.
pub(super) fn input(call: &ToolCall) -> Json {
    let json = match &call.input {
        ToolInput::Object(object) => to_raw_value(object),
        ToolInput::Invalid(text) => to_raw_value(text),
    };
    json.unwrap_or_else(|_| null())
}

fn null() -> Json {
    RawValue::NULL.to_owned()
}
