//! `POST /api/v1/jobs/{job_id}/run`

use labdata_application::{
    Error,
    work::run_job::{RunJob, run_job},
};
use labdata_domain::{agent::RUN_QUEUED, refusal::Resource};
use labdata_request_body::{
    fields::optional,
    readers::{object, storable, text},
    shape,
};
use serde_json::{Map, Value, json};

use crate::{
    About, Call, Method, Operation, OptionalJson, OrNotFound, Tag, WithEffects, Write,
    executions::{ExecutionView, view},
    jobs::JobPath,
    tools::{ScriptUse, ToolFacts},
};

shape! {
    /// Parameters and file of the run. The body may be empty or null.
    #[derive(Clone, Debug, Default)]
    pub struct RunJobBody {
        /// Values of parameters; defaults are filled in. At most 65,536 bytes as JSON.
        parameters: Option<Map<String, Value>> = optional(storable(object())),
        /// The file that the run is about: the script's `LABDATA_FILE_ID`.
        file_id: Option<String> = optional(text(..)),
    }
    example json!({"parameters": {"threshold": 0.3}, "file_id": "0191d5a4-0000-7000-8000-000000000000"});
    // The body, and `parameters`.
    json_values_at 2;
}

pub(super) fn operation() -> Operation {
    About {
        name: "run_job",
        method: Method::Post,
        path: "/api/v1/jobs/{job_id}/run",
        tag: Tag::Jobs,
        summary: "Runs a job's script on the platform",
        description: "Queues a run of the current version. Follow it by \
            `GET /job-executions/{execution_id}` and `…/logs`.",
        returns: "The execution, queued",
        refusals: &[],
    }
    .runs(run)
    .creating()
    .tool(ToolFacts {
        is_destructive: true,
        scripts: ScriptUse::Runs,
        ..ToolFacts::of(
            "Queues a run of a job's script. It does not wait for its end; list_job_executions shows the \
             state. What the script writes falls under the execution of that run, not under the one of \
             this conversation.",
        )
    })
}

async fn run(
    call: Call<Write, OptionalJson<RunJobBody>, (), JobPath>,
) -> Result<WithEffects<ExecutionView>, Error> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let body = call.body.unwrap_or_default();
    let command = RunJob {
        parameters: body.parameters.unwrap_or_default(),
        file: body.file_id,
    };
    let execution = run_job(&call.services, &call.actor, id, command).await?;
    Ok(WithEffects {
        response: view(&call.services, &call.actor, execution).await?,
        effects: vec![RUN_QUEUED],
    })
}
