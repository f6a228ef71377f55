//! `/api/v1/jobs`

use labdata_domain::{
    ids::JobId,
    jobs::{Job, ScriptVersion, VersionSummary},
};
use labdata_request_body::{
    Reader as _,
    fields::required,
    readers::{MaybeId, id, integer},
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use self::{parameters::ParameterView, trigger::TriggerView};

use crate::http::Timestamp;

pub mod create;
pub mod get;
pub mod list;
pub mod parameters;
pub mod preview_schedule;
pub mod trigger;
pub mod update;
pub mod version;
pub mod versions;

/// A job.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// Used as `job_id` in job execution operations.
    id: String,
    /// Its name, unique within the organization.
    name: String,
    /// Archived jobs are hidden from the default list.
    archived: bool,
    /// Description of the job.
    description: Option<String>,
    /// Automatic start condition.
    trigger: Option<TriggerView>,
    /// Parameters of its runs.
    parameter_definitions: Vec<ParameterView>,
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        Self {
            id: job.id.to_string(),
            name: job.name,
            archived: job.archived,
            description: job.description,
            trigger: job.trigger.map(Into::into),
            parameter_definitions: job.parameters.into_iter().map(Into::into).collect(),
        }
    }
}

/// A version of a job's script.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = JobVersion)]
pub struct VersionView {
    /// Counted from 1 within the job.
    version_number: u32,
    /// When it was saved.
    created_at: Timestamp,
    /// The id of the user who saved it.
    created_by: String,
    /// True for the version that the next run uses.
    is_current: bool,
}

impl From<VersionSummary> for VersionView {
    fn from(version: VersionSummary) -> Self {
        Self {
            version_number: version.number,
            created_at: version.created_at.into(),
            created_by: version.created_by.to_string(),
            is_current: version.is_current,
        }
    }
}

/// A version of a job's script, and the script.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = JobVersionWithCode)]
pub struct VersionWithCodeView {
    #[serde(flatten)]
    version: VersionView,
    /// Python source.
    code: String,
}

impl VersionWithCodeView {
    fn new(script: ScriptVersion, is_current: bool) -> Self {
        Self {
            version: VersionView {
                version_number: script.number,
                created_at: script.created_at.into(),
                created_by: script.created_by.to_string(),
                is_current,
            },
            code: script.code,
        }
    }
}

shape! {
    /// The path of a job.
    #[derive(Clone, Copy, Debug)]
    pub struct JobPath {
        /// The job's id
        pub job_id: MaybeId<JobId> = required(id()),
    }
}

shape! {
    /// The path of a version of a job's script.
    #[derive(Clone, Copy, Debug)]
    pub struct VersionPath {
        /// The job's id
        pub job_id: MaybeId<JobId> = required(id()),
        /// The version's number
        pub version_number: Option<u32> =
            required(
                integer(i64::MIN..=i64::MAX)
                    .map(|number| u32::try_from(number).ok())
                    .with("minimum", 1)
                    .with("maximum", u32::MAX),
            ),
    }
}
