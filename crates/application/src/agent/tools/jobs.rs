//! The tools `list_jobs`, `get_job` and `list_job_executions`.

use async_trait::async_trait;
use labdata_domain::{
    executions::{Execution, ExecutionState},
    ids::JobId,
    jobs::Job,
    page::PageRequest,
    refusal::Resource,
    timestamp,
};
use labdata_ports::{executions::ExecutionFilter, jobs::JobFilter};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{MaybeId, boolean, choice, id, text, unsigned},
    shape,
};
use serde_json::{Value, json};

use super::{ToolContext, TypedTool};
use crate::{
    Error,
    executions::list_executions::list_executions,
    jobs::{get_job::get_job, list_jobs::list_jobs},
};

/// A job as the tools show it.
pub(super) fn job_json(job: &Job) -> Value {
    let parameters = job.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.parameter_name,
            "label": parameter.label,
            "required": parameter.required,
            "default": parameter.default,
        })
    });
    json!({
        "id": job.id.to_string(),
        "name": job.name,
        "description": job.description,
        "archived": job.archived,
        "has_script": job.version_number.is_some(),
        "has_trigger": job.trigger.is_some(),
        "parameters": parameters.collect::<Vec<_>>(),
    })
}

/// An execution as the tools show it.
pub(super) fn execution_json(execution: &Execution) -> Value {
    json!({
        "id": execution.id.to_string(),
        "job_id": execution.job_id.to_string(),
        "job_name": execution.job_name,
        "status": execution.state.as_str(),
        "created_at": timestamp::render(execution.created_at),
        "started_at": execution.started_at.map(timestamp::render),
        "completed_at": execution.state.completed_at().map(timestamp::render),
        "error_message": execution.state.error(),
    })
}

shape! {
    /// Arguments of `list_jobs`.
    pub(super) struct ListJobsInput {
        /// Only the job of exactly this name.
        name: Option<String> = optional(text(..)),
        /// Archived jobs as well.
        include_archived: bool = or(false, boolean()),
    }
}

/// Jobs.
pub(super) struct ListJobs;

/// Maximum number of jobs that are listed.
const MAX_JOBS: u32 = 200;

#[async_trait]
impl TypedTool for ListJobs {
    type Input = ListJobsInput;
    const NAME: &'static str = "list_jobs";
    const DESCRIPTION: &'static str = "Lists jobs: Python scripts that the platform runs.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: ListJobsInput) -> Result<String, Error> {
        let filter = JobFilter {
            name: input.name,
            include_archived: input.include_archived,
        };
        let page = PageRequest {
            limit: Some(MAX_JOBS),
            after: None,
        };
        let page = list_jobs(context.ports, context.actor, &filter, page).await?;
        let jobs: Vec<Value> = page.items.iter().map(job_json).collect();
        Ok(json!({ "jobs": jobs, "more": page.next.is_some() }).to_string())
    }
}

shape! {
    /// Arguments of `get_job`.
    pub(super) struct GetJobInput {
        /// Id of the job.
        job_id: MaybeId<JobId> = required(id()),
    }
}

/// A job with its script.
pub(super) struct GetJob;

#[async_trait]
impl TypedTool for GetJob {
    type Input = GetJobInput;
    const NAME: &'static str = "get_job";
    const DESCRIPTION: &'static str = "Shows a job with the current version of its script.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: GetJobInput) -> Result<String, Error> {
        let id = input
            .job_id
            .known()
            .ok_or_else(|| Error::not_found(Resource::Job))?;
        let (job, script) = get_job(context.ports, context.actor, id).await?;
        let json = json!({
            "job": job_json(&job),
            "version_number": script.as_ref().map(|script| script.number),
            "code": script.map(|script| script.code),
        });
        Ok(json.to_string())
    }
}

shape! {
    /// Arguments of `list_job_executions`.
    pub(super) struct ListJobExecutionsInput {
        /// Only those of this job.
        job_id: Option<MaybeId<JobId>> = optional(id()),
        /// Only those in this state.
        status: Option<&'static str> =
            optional(choice(ExecutionState::NAMES.map(|name| (name, name)))),
        /// Maximum number of executions.
        limit: u32 = or(50, unsigned(1..=200)),
    }
}

/// Executions of jobs.
pub(super) struct ListJobExecutions;

#[async_trait]
impl TypedTool for ListJobExecutions {
    type Input = ListJobExecutionsInput;
    const NAME: &'static str = "list_job_executions";
    const DESCRIPTION: &'static str = "Lists executions of jobs with their states, newest first.";
    const NEEDS_WRITE: bool = false;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: ListJobExecutionsInput,
    ) -> Result<String, Error> {
        let job = match input.job_id.map(MaybeId::known) {
            Some(None) => return Err(Error::not_found(Resource::Job)),
            job => job.flatten(),
        };
        let filter = ExecutionFilter {
            job,
            status: input.status.map(str::to_owned),
            trigger_file: None,
        };
        let page = PageRequest {
            limit: Some(input.limit),
            after: None,
        };
        let page = list_executions(context.ports, context.actor, &filter, page).await?;
        let executions: Vec<Value> = page.items.iter().map(execution_json).collect();
        Ok(json!({ "executions": executions, "more": page.next.is_some() }).to_string())
    }
}
