//! `POST /api/v1/agent/runs/{run_id}/cancel`

use labdata_application::{Error, agent::cancel_run::cancel_run};
use labdata_domain::{ids::AgentRunId, refusal::Resource};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};

use crate::{About, Call, Method, NoBody, NoContent, Operation, OrNotFound, Read, Tag};

shape! {
    /// The path of a run.
    #[derive(Clone, Copy, Debug)]
    pub struct RunPath {
        /// The run's id, from its first event
        run_id: MaybeId<AgentRunId> = required(id()),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "cancel_agent_run",
        method: Method::Post,
        path: "/api/v1/agent/runs/{run_id}/cancel",
        tag: Tag::Agent,
        summary: "Cancels one of the caller's runs",
        description: "It ends within seconds with what it has, and its result says so. What it wrote stays: \
            revert its job execution to undo that. A run that has ended is not found.",
        returns: "The run is to end",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), RunPath>) -> Result<NoContent, Error> {
    let id = call.path.run_id.or_not_found(Resource::AgentRun)?;
    cancel_run(&call.platform.agent, &call.actor, id).await?;
    Ok(NoContent)
}
