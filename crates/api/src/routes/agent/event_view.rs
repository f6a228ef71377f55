//! Events of a run.

use actix_web::ResponseError;
use labdata_application::agent::AgentEvent;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{ResultView, output::output_json, result_view::input};
use crate::http::ApiError;

/// Event of a run. The last one is `result` or `error`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentRunEvent)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventView {
    /// The run began.
    RunStarted {
        /// Its id.
        run_id: String,
        /// Its model.
        model: String,
        /// The chat that it continues, or will be saved as.
        chat_id: Option<String>,
    },
    /// The model wrote more text.
    TextDelta {
        /// The text.
        delta: String,
    },
    /// A tool is called.
    ToolCall {
        /// Id, unique within the run.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The arguments: an object, or the text of a model that wrote none.
        #[schema(value_type = serde_json::Value)]
        input: Box<RawValue>,
    },
    /// A tool has returned.
    ToolResult {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The output: JSON where it is JSON and complete, else a text.
        #[schema(value_type = serde_json::Value)]
        output: Box<RawValue>,
        /// True if the call failed; the output says why.
        is_error: bool,
        /// True if the model gets less than all of it.
        truncated: bool,
    },
    /// The tokens of the run so far.
    Usage {
        /// Tokens of the requests.
        input_tokens: Option<u64>,
        /// Tokens of the answers.
        output_tokens: Option<u64>,
        /// All tokens.
        total_tokens: Option<u64>,
    },
    /// The run has ended.
    Result {
        /// Its result.
        result: ResultView,
    },
    /// The run has failed.
    Error {
        /// The reason.
        error: String,
        /// HTTP status that a run without a stream answers.
        status: u16,
    },
}

impl EventView {
    /// The name of the event.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::TextDelta { .. } => "text_delta",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::Usage { .. } => "usage",
            Self::Result { .. } => "result",
            Self::Error { .. } => "error",
        }
    }

    /// True for the last event of a run.
    pub(super) const fn is_last(&self) -> bool {
        matches!(self, Self::Result { .. } | Self::Error { .. })
    }
}

impl From<AgentEvent> for EventView {
    fn from(event: AgentEvent) -> Self {
        match event {
            AgentEvent::RunStarted {
                run_id,
                model,
                chat_id,
            } => Self::RunStarted {
                run_id: run_id.to_string(),
                model,
                chat_id: chat_id.map(|id| id.to_string()),
            },
            AgentEvent::TextDelta(delta) => Self::TextDelta { delta },
            AgentEvent::ToolCall(call) => Self::ToolCall {
                input: input(&call),
                tool_call_id: call.id,
                tool_name: call.name,
            },
            AgentEvent::ToolResult {
                call,
                output,
                is_truncated,
                chat_id,
            } => Self::ToolResult {
                tool_call_id: call.id,
                tool_name: call.name,
                output: output_json(&output, chat_id),
                is_error: output.is_error,
                truncated: is_truncated,
            },
            AgentEvent::Usage(usage) => Self::Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                total_tokens: usage.total_tokens,
            },
            AgentEvent::Result(result) => Self::Result {
                result: (*result).into(),
            },
            AgentEvent::Error(error) => {
                let error = ApiError::from(error);
                Self::Error {
                    error: error.detail(),
                    status: error.status_code().as_u16(),
                }
            }
        }
    }
}
