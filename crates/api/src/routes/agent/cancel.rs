//! `POST /api/v1/agent/runs/{run_id}/cancel`

use labdata_application::agent::cancel_run::cancel_run;
use labdata_domain::{ids::AgentRunId, refusal::Resource};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};

use crate::http::{ApiResult, Call, NoBody, NoContent, OrNotFound, Read};

shape! {
    /// The path of a run.
    #[derive(Clone, Copy, Debug)]
    pub struct RunPath {
        /// The run's id, from its first event
        pub run_id: MaybeId<AgentRunId> = required(id()),
    }
}

/// Cancels one of the caller's runs
///
/// It ends within seconds with what it has, and its result says so. What it wrote stays: revert its job
/// execution to undo that. A run that has ended is not found.
#[utoipa::path(
    post,
    path = "/api/v1/agent/runs/{run_id}/cancel",
    operation_id = "cancel_agent_run",
    tag = "agent",
    responses((status = 204, description = "The run is to end"))
)]
pub async fn handle(call: Call<Read, NoBody, (), RunPath>) -> ApiResult<NoContent> {
    let id = call.path.run_id.or_not_found(Resource::AgentRun)?;
    cancel_run(call.ports(), &call.app.agent, &call.actor, id).await?;
    Ok(NoContent)
}
