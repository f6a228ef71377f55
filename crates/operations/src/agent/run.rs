//! `POST /api/v1/agent/runs`

use labdata_domain::{agent::MAX_PROMPT_LENGTH, ids::ChatId};
use labdata_request_body::{
    Definitions, Output as _, Schema,
    fields::{optional, or, required},
    readers::{Reader as _, boolean, text, uuid},
    shape,
};
use serde_json::json;

use super::{EventView, ResultView};
use crate::{About, Describe, EVENT_STREAM, JsonBody, Method, Operation, Read, Tag, body::JSON};

shape! {
    /// The run to begin.
    #[derive(Clone, Debug)]
    pub struct RunAgentBody {
        /// The prompt.
        pub prompt: String = required(text(1..=MAX_PROMPT_LENGTH).example("Which samples grew fastest?")),
        /// True to get the run as server-sent events.
        pub stream: bool = required(boolean()),
        /// A model of the platform; the default one unless given.
        pub model: Option<String> = optional(text(..)),
        /// The chat to continue.
        pub chat_id: Option<ChatId> = optional(uuid()),
        /// Save the run as a new chat, unless it continues one.
        pub save: bool = or(false, boolean()),
    }
    example json!({"prompt": "Which samples grew fastest?", "stream": false, "save": true});
}

/// The result, or the events.
#[derive(Debug)]
pub enum RunDescription {}

impl Describe for RunDescription {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        vec![
            (JSON, ResultView::schema(definitions)),
            (EVENT_STREAM, EventView::schema(definitions)),
        ]
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "run_agent",
        method: Method::Post,
        path: "/api/v1/agent/runs",
        tag: Tag::Agent,
        summary: "Runs the agent",
        description: "It responds to a prompt with the tools of the platform, which have the rights of the API \
            key: those that change data need the write scope. All writes of a run fall under one job \
            execution, which can be reverted.\n\n\
            With `stream` the response is a stream of server-sent events (`event` is the `type` of the \
            data, `id` counts up), with a comment every 5 s. It ends with `result` or `error`. A client \
            that leaves cancels the run.",
        returns: "The result, or the events of the run",
        refusals: &[
            (400, "The platform does not have the model"),
            (404, "The caller has no such chat"),
            (429, "The organization has as many runs as it may, or has used its tokens of the month"),
            (502, "No model is set up, or its provider failed"),
        ],
    }
    .served_by_hand::<Read, JsonBody<RunAgentBody>, (), (), RunDescription>()
}
