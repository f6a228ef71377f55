//! The result of a run.

use labdata_application::agent::AgentResult;
use labdata_domain::{
    agent::{CompletedCall, ToolCall, ToolInput, Usage},
    ids::ChatId,
};
use labdata_request_body::output;
use serde_json::value::{RawValue, to_raw_value};

use super::output::output_json;

output! {
    /// Result of a run of the agent.
    #[derive(Debug)]
    pub struct ResultView as "AgentRunResult" from result: AgentResult {
        /// The tool calls, in order.
        tool_calls: Vec<ToolCallView> =
            result.run.tool_calls().map(|call| ToolCallView::of(call, result.chat_id)).collect(),
        /// The final response. It says so if a limit ended the run.
        output: String = result.run.output,
        /// The model.
        model: String = result.model,
        usage: UsageView = result.run.usage.into(),
        /// The chat that the run is saved in; null without one, and if saving failed.
        chat_id: Option<ChatId> = result.chat_id,
    }
}

output! {
    /// A tool call and its output.
    #[derive(Debug)]
    pub struct ToolCallView as "AgentToolCall" {
        /// Id, unique within the run.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The arguments: an object, or the text of a model that wrote none.
        input: Box<RawValue>,
        /// The output: JSON where it is JSON and complete, else a text. `figures` of `run_python` have
        /// `name`, `media_type` and `size`; in a saved chat `file_id` and `url`, otherwise an image has
        /// `base64`. A Plotly figure is `figure` as well, except in chats that are read later.
        output: Box<RawValue>,
        /// True if the call failed; the output says why.
        is_error: bool,
    }
}

output! {
    /// Number of tokens of a run, as far as the provider reports it.
    #[derive(Clone, Copy, Debug)]
    #[expect(
        clippy::struct_field_names,
        reason = "the names are the specification's"
    )]
    pub struct UsageView as "AgentUsage" from usage: Usage {
        /// Tokens of the requests.
        input_tokens: Option<u64> = usage.input_tokens,
        /// Tokens of the responses.
        output_tokens: Option<u64> = usage.output_tokens,
        /// All tokens.
        total_tokens: Option<u64> = usage.total_tokens,
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

/// The arguments of a call.
pub(super) fn input(call: &ToolCall) -> Box<RawValue> {
    let json = match &call.input {
        ToolInput::Object(object) => to_raw_value(object),
        ToolInput::Invalid(text) => to_raw_value(text),
    };
    json.unwrap_or_else(|_| RawValue::NULL.to_owned())
}
