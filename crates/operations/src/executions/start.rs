//! `POST /api/v1/job-executions`

use labdata_application::{
    Error,
    executions::start_execution::{StartExecution, start_execution},
};
use labdata_domain::{executions::MAX_TIMEOUT_MINUTES, jobs::MAX_NAME_LENGTH, patterns};
use labdata_request_body::{
    Reader as _,
    fields::optional,
    readers::{text, unsigned},
    shape,
};
use serde_json::json;

use super::{ExecutionView, view};
use crate::{About, Call, Method, Operation, OptionalJson, Tag, Write};

shape! {
    /// The execution to open. The body may be empty or null.
    #[derive(Clone, Debug, Default)]
    pub struct StartExecutionBody {
        /// The job to run under.
        job_id: Option<String> = optional(text(..)),
        /// The job to run under, created if missing; ignored when `job_id` is given; defaults to
        /// 'Off-Platform Manual Job'.
        job_name: Option<String> = optional(text(..).with("maxLength", MAX_NAME_LENGTH).with("pattern", patterns::ONE_LINE)),
        /// The platform fails the execution unless it is closed within this many minutes.
        timeout_minutes: Option<u32> = optional(unsigned(1..=MAX_TIMEOUT_MINUTES)),
    }
    example json!({"job_name": "Plate import", "timeout_minutes": 60});
}

pub(super) fn operation() -> Operation {
    About {
        name: "start_job_execution",
        method: Method::Post,
        path: "/api/v1/job-executions",
        tag: Tag::JobExecutions,
        summary: "Opens an execution for a script that runs outside the platform",
        description: "Everything that the script writes and uploads under the execution can be \
            reverted as a unit. It is running until it is closed, or until `timeout_minutes` have \
            passed. Without `job_id`, the job named `job_name` is created if it does not exist.",
        returns: "The execution, running",
        refusals: &[],
    }
    .runs(run)
    .creating()
}

async fn run(call: Call<Write, OptionalJson<StartExecutionBody>>) -> Result<ExecutionView, Error> {
    let body = call.body.unwrap_or_default();
    let command = StartExecution {
        job_id: body.job_id,
        job_name: body.job_name,
        timeout_minutes: body.timeout_minutes,
    };
    let execution = start_execution(&call.services, &call.actor, command).await?;
    view(&call.services, &call.actor, execution).await
}
