//! Events of a run.

use labdata_application::agent::{AgentError, AgentEvent};
use labdata_domain::ids::{AgentRunId, ChatId};
use labdata_request_body::{
    Definitions, Output, OutputObject as _, Property, Schema, output, output::object_schema,
};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{json, value::RawValue};

use super::{ResultView, UsageView, output::output_json, result_view::input};

/// Declares the kinds of events: an object each, whose field `type` is the kind's name.
macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:literal => $kind:ident { $($fields:tt)* })+) => {
        $(output! {
            $(#[doc = $doc])+
            #[derive(Debug)]
            pub struct $kind as $name { $($fields)* }
        })+

        /// Event of a run. The last one is `result` or `error`.
        #[derive(Debug)]
        pub enum EventView {
            $($(#[doc = $doc])+ $kind($kind),)+
        }

        impl EventView {
            /// The name of the event.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)+
                }
            }
        }

        impl Serialize for EventView {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", self.name())?;
                match self {
                    $(Self::$kind(event) => event.serialize_fields(&mut map)?,)+
                }
                map.end()
            }
        }

        impl Output for EventView {
            fn schema(definitions: &mut Definitions) -> Schema {
                definitions.define("AgentRunEvent", |definitions| {
                    let kinds = [$({
                        let mut properties = $kind::properties(definitions);
                        properties.push(kind_property($name));
                        object_schema(concat!($($doc),+), properties)
                    },)+];
                    Schema::default()
                        .with("oneOf", kinds.map(serde_json::Value::from).to_vec())
                        .described("Event of a run. The last one is `result` or `error`.")
                })
            }
        }
    };
}

fn kind_property(name: &str) -> Property {
    Property {
        name: "type",
        description: String::new(),
        schema: Schema::of("string").with("enum", json!([name])),
        is_required: true,
        default: None,
    }
}

events! {
    /// The run began.
    "run_started" => RunStarted {
        /// Its id.
        run_id: AgentRunId,
        /// Its model.
        model: String,
        /// The chat that it continues, or will be saved as.
        chat_id: Option<ChatId>,
    }
    /// The model wrote more text.
    "text_delta" => TextDelta {
        /// The text.
        delta: String,
    }
    /// A tool is called.
    "tool_call" => ToolCallBegan {
        /// Id, unique within the run.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The arguments: an object, or the text of a model that wrote none.
        input: Box<RawValue>,
    }
    /// A tool has returned.
    "tool_result" => ToolReturned {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The output: JSON where it is JSON and complete, else a text.
        output: Box<RawValue>,
        /// True if the call failed; the output says why.
        is_error: bool,
        /// True if the model gets less than all of it.
        truncated: bool,
    }
    /// The tokens of the run so far.
    "usage" => TokensUsed {
        #[flatten]
        usage: UsageView,
    }
    /// The run has ended.
    "result" => RunEnded {
        /// Its result.
        result: ResultView,
    }
    /// The run has failed.
    "error" => RunFailed {
        /// The reason.
        pub error: String,
        /// HTTP status that a run without a stream responds with.
        pub status: u32,
    }
}

impl EventView {
    /// Describes an event; `failed` describes an error as the response of a run without a stream would.
    pub fn of(event: AgentEvent, failed: impl FnOnce(AgentError) -> RunFailed) -> Self {
        match event {
            AgentEvent::RunStarted {
                run_id,
                model,
                chat_id,
            } => Self::RunStarted(RunStarted {
                run_id,
                model,
                chat_id,
            }),
            AgentEvent::TextDelta(delta) => Self::TextDelta(TextDelta { delta }),
            AgentEvent::ToolCall(call) => Self::ToolCallBegan(ToolCallBegan {
                input: input(&call),
                tool_call_id: call.id,
                tool_name: call.name,
            }),
            AgentEvent::ToolResult {
                call,
                output,
                is_truncated,
                chat_id,
            } => Self::ToolReturned(ToolReturned {
                tool_call_id: call.id,
                tool_name: call.name,
                output: output_json(&output, chat_id),
                is_error: output.is_error,
                truncated: is_truncated,
            }),
            AgentEvent::Usage(usage) => Self::TokensUsed(TokensUsed {
                usage: usage.into(),
            }),
            AgentEvent::Result(result) => Self::RunEnded(RunEnded {
                result: (*result).into(),
            }),
            AgentEvent::Error(error) => Self::RunFailed(failed(error)),
        }
    }

    /// True for the last event of a run.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::RunEnded(_) | Self::RunFailed(_))
    }
}
