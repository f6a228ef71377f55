//! `POST /api/v1/agent/runs`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use futures::{FutureExt, StreamExt, stream::BoxStream};
use labdata_application::{
    Error,
    agent::{AgentEvent, RunAgent, run_agent},
};
use labdata_domain::{agent::MAX_PROMPT_LENGTH, ids::ChatId};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{Reader as _, boolean, text, uuid},
    shape,
};
use serde_json::json;

use time::Duration;
use tokio::time::sleep;

use super::{EventView, ResultView, events};
use crate::http::{ApiResult, Call, JsonBody, Read, error::ErrorBody};

shape! {
    /// The run to begin.
    #[derive(Clone, Debug)]
    pub struct RunAgentBody {
        /// The prompt.
        prompt: String = required(text(1..=MAX_PROMPT_LENGTH).example("Which samples grew fastest?")),
        /// True to get the run as server-sent events.
        stream: bool = required(boolean()),
        /// A model of the platform; the default one unless given.
        model: Option<String> = optional(text(..)),
        /// The chat to continue.
        chat_id: Option<ChatId> = optional(uuid()),
        /// Save the run as a new chat, unless it continues one.
        save: bool = or(false, boolean()),
    }
    example json!({"prompt": "Which samples grew fastest?", "stream": false, "save": true});
}

/// Runs the agent
///
/// It answers a prompt with the tools of the platform, which have the rights of the API key: those that
/// change data need the write scope. All writes of a run fall under one job execution, which can be
/// reverted.
///
/// With `stream` the answer is a stream of server-sent events (`event` is the `type` of the data, `id`
/// counts up), with a comment every 5 s. It ends with `result` or `error`. A client that leaves cancels
/// the run.
#[utoipa::path(
    post,
    path = "/api/v1/agent/runs",
    operation_id = "run_agent",
    tag = "agent",
    responses(
        (status = 200, description = "The result, or the events of the run", content(
            (ResultView = "application/json"),
            (EventView = "text/event-stream"),
        )),
        (status = 400, description = "The platform does not have the model", body = ErrorBody),
        (status = 404, description = "The caller has no such chat", body = ErrorBody),
        (status = 429, description = "The organization has as many runs as it may, or has used its tokens of the month", body = ErrorBody),
        (status = 502, description = "No model is set up, or its provider failed", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, JsonBody<RunAgentBody>>) -> ApiResult<RunResponse> {
    let body = call.body.0.clone();
    let command = RunAgent {
        prompt: body.prompt,
        model: body.model,
        chat_id: body.chat_id,
        save: body.save,
    };
    let run = run_agent(call.ports(), &call.app.agent, &call.actor, command).await?;
    let (work, mut events) = (run.work, run.events);
    // Apart from the answer, so that a client that leaves cancels the run but not what it has to close.
    tokio::spawn(async move {
        let pause = |time: Duration| sleep(time.unsigned_abs()).boxed();
        work.finish(&pause).await;
    });
    if body.stream {
        return Ok(RunResponse::Events(events));
    }
    while let Some(event) = events.next().await {
        match event {
            AgentEvent::Result(result) => return Ok(RunResponse::Result((*result).into())),
            AgentEvent::Error(error) => return Err(error.into()),
            _ => {}
        }
    }
    Err(Error::Internal("a run of the agent has no end".to_owned()).into())
}

/// Answer to the request for a run.
pub enum RunResponse {
    /// The result.
    Result(ResultView),
    /// The events, as they come.
    Events(BoxStream<'static, AgentEvent>),
}

impl std::fmt::Debug for RunResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunAnswer").finish_non_exhaustive()
    }
}

impl Responder for RunResponse {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        match self {
            Self::Result(result) => HttpResponse::Ok().json(result),
            Self::Events(events) => events::response(events),
        }
    }
}
