//! `/api/v1/job-executions`

use labdata_application::executions::starters::StartedExecution;
use labdata_domain::{
    executions::{ExecutionState, Origin},
    ids::ExecutionId,
};
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::author::StartedByView;
use crate::{http::Timestamp, names};

pub mod author;
pub mod cancel;
pub mod changed_rows;
pub mod changes;
pub mod close;
pub mod get;
pub mod list;
pub mod revert;
pub mod start;

names! {
    /// State of an execution.
    pub JobExecutionStatus = ExecutionState::NAMES;
}

/// One run of a job.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = JobExecution)]
pub struct ExecutionView {
    /// Passed to write and upload operations.
    job_execution_id: String,
    /// The job that it belongs to.
    job_id: String,
    /// Name of the job.
    job_name: String,
    /// Its state.
    #[schema(value_type = JobExecutionStatus)]
    status: &'static str,
    /// When it started; null while it is queued.
    started_at: Option<Timestamp>,
    /// Null while it is still running.
    completed_at: Option<Timestamp>,
    /// Why it failed, where the platform knows.
    error_message: Option<String>,
    /// Of runs on the platform.
    exit_code: Option<i32>,
    /// Of runs on the platform: the version of the script that ran.
    script_version: Option<u32>,
    /// Of runs on the platform: the file that triggered it.
    trigger_file_id: Option<String>,
    /// Of runs on the platform.
    parameters: Option<Map<String, Value>>,
    /// Who or what started it.
    started_by: StartedByView,
}

impl From<StartedExecution> for ExecutionView {
    fn from(started: StartedExecution) -> Self {
        let execution = started.execution;
        let run = match execution.origin {
            Origin::Platform(run) => Some(run),
            Origin::OffPlatform | Origin::DataWrite => None,
        };
        Self {
            job_execution_id: execution.id.to_string(),
            job_id: execution.job_id.to_string(),
            job_name: execution.job_name,
            status: execution.state.as_str(),
            started_at: execution.started_at.map(Into::into),
            completed_at: execution.state.completed_at().map(Into::into),
            error_message: execution.state.error().map(str::to_owned),
            exit_code: run.as_ref().and_then(|run| run.exit_code),
            script_version: run.as_ref().map(|run| run.script_version),
            trigger_file_id: run
                .as_ref()
                .and_then(|run| run.trigger_file)
                .map(|file| file.to_string()),
            parameters: run.map(|run| run.parameters),
            started_by: started.started_by.into(),
        }
    }
}

shape! {
    /// The path of an execution.
    #[derive(Clone, Copy, Debug)]
    pub struct ExecutionPath {
        /// The execution's id
        pub execution_id: MaybeId<ExecutionId> = required(id()),
    }
}
