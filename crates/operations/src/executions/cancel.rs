//! `POST /api/v1/job-executions/{execution_id}/cancel`

use labdata_application::{Error, executions::cancel_execution::cancel_execution};
use labdata_domain::refusal::Resource;

use super::{ExecutionPath, ExecutionView, view};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Tag, Write};

pub(super) fn operation() -> Operation {
    About {
        name: "cancel_job_execution",
        method: Method::Post,
        path: "/api/v1/job-executions/{execution_id}/cancel",
        tag: Tag::JobExecutions,
        summary: "Cancels an execution",
        description: "One that waits never starts; the script of one that runs on the platform is \
            stopped. Either takes no writes from then on. What it wrote stays: revert it to undo that.",
        returns: "The execution, cancelled",
        refusals: &[(400, "It has ended; the message names the execution that retries it, if one does")],
    }
    .runs(run)
}

async fn run(call: Call<Write, NoBody, (), ExecutionPath>) -> Result<ExecutionView, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let execution = cancel_execution(&call.services, &call.actor, id).await?;
    view(&call.services, &call.actor, execution).await
}
