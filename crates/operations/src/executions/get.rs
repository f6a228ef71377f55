//! `GET /api/v1/job-executions/{execution_id}`

use labdata_application::{Error, executions::get_execution::get_execution};
use labdata_domain::refusal::Resource;

use super::{ExecutionPath, ExecutionView, view};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "get_job_execution",
        method: Method::Get,
        path: "/api/v1/job-executions/{execution_id}",
        tag: Tag::JobExecutions,
        summary: "Reads one execution",
        description: "Status, times and result of one execution.",
        returns: "The execution",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), ExecutionPath>) -> Result<ExecutionView, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let execution = get_execution(&call.services, &call.actor, id).await?;
    view(&call.services, &call.actor, execution).await
}
