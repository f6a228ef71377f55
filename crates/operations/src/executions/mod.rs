//! `/api/v1/job-executions`

use labdata_application::{
    Error, Services,
    executions::starters::{StartedExecution, with_starter},
};
use labdata_domain::{
    executions::{Execution, ExecutionState, Origin},
    ids::{ExecutionId, FileId, JobId},
    people::actor::Actor,
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
    readers::{MaybeId, id},
    shape,
};
use serde_json::{Map, Value};

use self::author::{NamedUserView, StartedByView};
use crate::Operation;

pub mod author;
pub mod cancel;
pub mod changed_rows;
pub mod changes;
pub mod close;
pub mod get;
pub mod list;
pub mod revert;
pub mod start;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        start::operation(),
        list::operation(),
        get::operation(),
        close::operation(),
        changes::operation(),
        changed_rows::operation(),
        revert::operation(),
        cancel::operation(),
    ]
}

names! {
    /// State of an execution.
    pub JobExecutionStatus = ExecutionState::NAMES;
}

output! {
    /// One run of a job.
    #[derive(Clone, Debug)]
    pub struct ExecutionView as "JobExecution" from started: StartedExecution {
        /// Passed to write and upload operations.
        job_execution_id: ExecutionId = started.execution.id,
        /// The job that it belongs to.
        job_id: JobId = started.execution.job_id,
        /// Name of the job.
        job_name: String = started.execution.job_name,
        /// Its state.
        status: JobExecutionStatus = started.execution.state.as_str().into(),
        /// When it started; null while it is queued.
        started_at: Option<Timestamp> = started.execution.started_at.map(Into::into),
        /// Null while it is still running.
        completed_at: Option<Timestamp> = started.execution.state.completed_at().map(Into::into),
        /// Why it failed, where the platform knows.
        error_message: Option<String> = started.execution.state.error().map(str::to_owned),
        /// Of runs on the platform.
        exit_code: Option<i32> = started.execution.origin.run().and_then(|run| run.exit_code),
        /// Of runs on the platform: the version of the script that ran.
        script_version: Option<u32> = started.execution.origin.run().map(|run| run.script_version),
        /// Of runs on the platform: the execution that this one retries, because its worker was lost. What that one
        /// wrote stays until it is reverted.
        retry_of: Option<ExecutionId> = started.execution.origin.run().and_then(|run| run.retry_of),
        /// Of runs on the platform: the execution that retries this one, which has failed.
        retried_by: Option<ExecutionId> =
            started.execution.origin.run().and_then(|run| run.retried_by),
        /// Of runs on the platform: the file that triggered it.
        trigger_file_id: Option<FileId> =
            started.execution.origin.run().and_then(|run| run.trigger_file),
        /// Of runs on the platform.
        parameters: Option<Map<String, Value>> =
            match started.execution.origin {
                Origin::Platform(run) => Some(run.parameters),
                Origin::OffPlatform | Origin::DataWrite | Origin::Agent => None,
            },
        /// Of runs on the platform: the user who wrote the version of the script that ran, whose rights it has
        /// when a trigger started it.
        script_author: Option<NamedUserView> = started.started_by.script_author.clone().map(Into::into),
        /// User and trigger that started it.
        started_by: StartedByView = started.started_by.into(),
    }
}

/// An execution with who or what started it.
pub(crate) async fn view(
    services: &Services,
    actor: &Actor,
    execution: Execution,
) -> Result<ExecutionView, Error> {
    Ok(with_starter(services, actor, execution).await?.into())
}

shape! {
    /// The path of an execution.
    #[derive(Clone, Copy, Debug)]
    pub struct ExecutionPath {
        /// The execution's id
        pub execution_id: MaybeId<ExecutionId> = required(id()),
    }
}
