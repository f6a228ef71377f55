//! `/api/v1/jobs`

use labdata_domain::{
    ids::JobId,
    jobs::{Job, ScriptVersion, VersionSummary},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use self::{parameters::ParameterView, trigger::TriggerView};

use crate::http::{
    Timestamp,
    shape::{
        Fields, Place, Shape,
        readers::{MaybeId, id, integer},
    },
};

pub mod create;
pub mod get;
pub mod list;
pub mod parameters;
pub mod trigger;
pub mod update;
pub mod version;
pub mod versions;

/// A job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobView {
    /// Used as `job_id` in job execution operations.
    id: String,
    /// Its name, unique within the organization.
    name: String,
    /// Archived jobs are hidden from the default list.
    archived: bool,
    /// What it does.
    description: Option<String>,
    /// What starts it without anybody asking.
    trigger: Option<TriggerView>,
    /// What its runs are asked for.
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
pub struct VersionView {
    /// Counted from 1 within the job.
    version_number: u32,
    /// When it was saved.
    created_at: Timestamp,
    /// The id of the user who saved it.
    created_by: String,
    /// Whether the next run uses it.
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

/// The job's id.
#[derive(Clone, Copy, Debug)]
pub struct JobPath {
    /// What nobody knows is answered 404, be it a UUID or not.
    pub job_id: MaybeId<JobId>,
}

impl Shape for JobPath {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        Some(Self {
            job_id: fields.required("job_id", id())?,
        })
    }
}

/// The job's id and the number of a version of its script.
#[derive(Clone, Copy, Debug)]
pub struct VersionPath {
    /// The job.
    pub job_id: MaybeId<JobId>,
    /// The version; none where no version can bear the number.
    pub version_number: Option<u32>,
}

impl Shape for VersionPath {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let job_id = fields.required("job_id", id());
        let version_number = fields.required("version_number", integer(i64::MIN..=i64::MAX));
        Some(Self {
            job_id: job_id?,
            version_number: u32::try_from(version_number?).ok(),
        })
    }
}
