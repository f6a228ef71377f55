//! `POST /api/v1/agent/runs`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use futures::{FutureExt, StreamExt, stream::BoxStream};
use labdata_application::{
    Error,
    agent::{AgentEvent, RunAgent, run_agent},
};
use labdata_operations::agent::{ResultView, run::RunAgentBody};
use time::Duration;
use tokio::time::sleep;

use super::events;
use crate::http::{ApiResult, Call, JsonBody, Read, follow::LastingCaller};

/// Runs the agent.
pub async fn handle(call: Call<Read, JsonBody<RunAgentBody>>) -> ApiResult<RunResponse> {
    let JsonBody(body) = call.body.clone();
    let command = RunAgent {
        prompt: body.prompt,
        model: body.model,
        chat_id: body.chat_id,
        save: body.save,
    };
    let caller = LastingCaller::of(&call)?;
    let run = run_agent(
        call.services(),
        &call.app.platform.agent,
        &call.actor,
        command,
    )
    .await?;
    let (work, mut events) = (run.work, run.events);
    // Apart from the response, so that a client that leaves cancels the run but not what it has to close.
    tokio::spawn(async move {
        let pause = |time: Duration| sleep(time.unsigned_abs()).boxed();
        let revoked = async move { caller.until_invalid().await };
        work.finish(&pause, revoked).await;
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

/// Response to the request for a run.
pub enum RunResponse {
    /// The result.
    Result(ResultView),
    /// The events, as they come.
    Events(BoxStream<'static, AgentEvent>),
}

impl std::fmt::Debug for RunResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunResponse").finish_non_exhaustive()
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
