//! `PATCH /api/v1/job-executions/{execution_id}`

use labdata_application::{Error, executions::close_execution::close_execution};
use labdata_domain::{executions::FinalStatus, refusal::Resource};
use labdata_request_body::{fields::required, readers::choice, shape};
use serde_json::json;

use super::{ExecutionPath, ExecutionView, view};
use crate::{About, Call, JsonBody, Method, Operation, OrNotFound, Tag, Write};

shape! {
    /// Final status.
    #[derive(Clone, Debug)]
    pub struct CloseExecutionBody {
        /// Either is final.
        status: FinalStatus = required(choice(FinalStatus::ALL)),
    }
    example json!({"status": "completed"});
}

pub(super) fn operation() -> Operation {
    About {
        name: "close_job_execution",
        method: Method::Patch,
        path: "/api/v1/job-executions/{execution_id}",
        tag: Tag::JobExecutions,
        summary: "Closes an execution that was opened for a script outside the platform",
        description: "The same status again changes nothing. Executions that the platform runs, and \
            those that a data write created, are not closed from outside.",
        returns: "The execution, closed",
        refusals: &[
            (
                400,
                "It ended with another status, which is final; or the platform runs it, or a data write \
                    created it",
            ),
        ],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, JsonBody<CloseExecutionBody>, (), ExecutionPath>,
) -> Result<ExecutionView, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let execution = close_execution(&call.services, &call.actor, id, call.body.status).await?;
    view(&call.services, &call.actor, execution).await
}
