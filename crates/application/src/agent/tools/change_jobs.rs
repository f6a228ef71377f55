//! The tools `create_job`, `update_job` and `run_job`.

use async_trait::async_trait;
use labdata_domain::{
    agent::{JOB_ARCHIVED, RUN_QUEUED, SCRIPT_REPLACED},
    ids::JobId,
    refusal::Resource,
    triggers::TriggerChange,
};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{MaybeId, boolean, id, object, text},
    shape,
};
use serde_json::{Map, Value, json};

use super::{
    ToolContext, TypedTool,
    effects::{NONE, with_effects},
    jobs::{execution_json, job_json},
};
use crate::{
    Error,
    jobs::{
        check_script::CheckedScript,
        create_job::{CreateJob, create_job},
        fields,
        update_job::{CodeChange, UpdateJob, update_job},
    },
    work::run_job::{RunJob, run_job},
};

shape! {
    /// Arguments of `create_job`.
    pub(super) struct CreateJobInput {
        /// Its name, unique within the organization.
        name: String = required(fields::name()),
        /// Python source. Dependencies stand in a PEP 723 block.
        code: String = required(fields::code()),
        /// Description for people.
        description: Option<String> = optional(fields::description()),
    }
}

/// Creates jobs.
pub(super) struct CreateJobTool;

#[async_trait]
impl TypedTool for CreateJobTool {
    type Input = CreateJobInput;
    const NAME: &'static str = "create_job";
    const DESCRIPTION: &'static str = "Creates a job with a Python script. It does not run it.";
    const NEEDS_WRITE: bool = true;

    async fn run(&self, context: &ToolContext<'_>, input: CreateJobInput) -> Result<String, Error> {
        let command = CreateJob {
            name: input.name,
            script: CheckedScript::check(&input.code).await,
            description: input.description,
            parameters: Vec::new(),
            trigger: TriggerChange::default(),
        };
        let job = create_job(context.ports, context.actor, command).await?;
        Ok(with_effects(json!({ "job": job_json(&job) }), NONE))
    }
}

shape! {
    /// Arguments of `update_job`.
    pub(super) struct UpdateJobInput {
        /// Id of the job.
        job_id: MaybeId<JobId> = required(id()),
        /// New name.
        name: Option<String> = optional(fields::name()),
        /// New Python source, as a whole; it becomes a new version.
        code: Option<String> = optional(fields::code()),
        /// New description.
        description: Option<String> = optional(fields::description()),
        /// True archives it, false restores it.
        archived: Option<bool> = optional(boolean()),
    }
}

/// Changes jobs.
pub(super) struct UpdateJobTool;

#[async_trait]
impl TypedTool for UpdateJobTool {
    type Input = UpdateJobInput;
    const NAME: &'static str = "update_job";
    const DESCRIPTION: &'static str = "Changes a job. Earlier versions of its script are kept.";
    const NEEDS_WRITE: bool = true;
    const IS_DESTRUCTIVE: bool = true;

    async fn run(&self, context: &ToolContext<'_>, input: UpdateJobInput) -> Result<String, Error> {
        let id = input
            .job_id
            .known()
            .ok_or_else(|| Error::not_found(Resource::Job))?;
        let effects = [
            (input.archived == Some(true)).then_some(JOB_ARCHIVED),
            input.code.is_some().then_some(SCRIPT_REPLACED),
        ];
        let command = UpdateJob {
            name: input.name,
            description: input.description,
            code: input.code.map(CodeChange::Replace),
            archived: input.archived,
            parameters: None,
            trigger: TriggerChange::default(),
        };
        let job = update_job(context.ports, context.actor, id, command).await?;
        let effects = effects.into_iter().flatten();
        Ok(with_effects(json!({ "job": job_json(&job) }), effects))
    }
}

shape! {
    /// Arguments of `run_job`.
    pub(super) struct RunJobInput {
        /// Id of the job.
        job_id: MaybeId<JobId> = required(id()),
        /// Values of its parameters by name.
        parameters: Map<String, Value> = or(json!({}), object()),
        /// Id of the file that the run is about.
        file_id: Option<String> = optional(text(..)),
    }
}

/// Queues runs of jobs.
pub(super) struct RunJobTool;

#[async_trait]
impl TypedTool for RunJobTool {
    type Input = RunJobInput;
    const NAME: &'static str = "run_job";
    const DESCRIPTION: &'static str = "Queues a run of a job's script. It does not wait for its end; \
        list_job_executions shows the state. What the script writes falls under the execution of that \
        run, not under the one of this conversation.";
    const NEEDS_WRITE: bool = true;
    const IS_DESTRUCTIVE: bool = true;

    async fn run(&self, context: &ToolContext<'_>, input: RunJobInput) -> Result<String, Error> {
        let id = input
            .job_id
            .known()
            .ok_or_else(|| Error::not_found(Resource::Job))?;
        let command = RunJob {
            parameters: input.parameters,
            file: input.file_id.filter(|id| !id.is_empty()),
        };
        let execution = run_job(context.ports, context.actor, id, command).await?;
        let fields = json!({ "execution": execution_json(&execution) });
        Ok(with_effects(fields, [RUN_QUEUED]))
    }
}
