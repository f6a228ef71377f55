//! `/api/v1/jobs`

use labdata_domain::{
    ids::{JobId, UserId},
    jobs::{Job, VersionSummary},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    output,
    readers::{MaybeId, id},
    shape,
};

use self::{parameters::ParameterView, trigger::TriggerView};
use crate::Operation;

pub mod create;
mod fields;
pub mod get;
pub mod list;
pub mod parameters;
pub mod preview_schedule;
pub mod trigger;
pub mod update;
pub mod version;
pub mod versions;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        list::operation(),
        create::operation(),
        get::operation(),
        update::operation(),
        versions::operation(),
        version::operation(),
        preview_schedule::operation(),
    ]
}

output! {
    /// A job.
    #[derive(Clone, Debug)]
    pub struct JobView as "Job" from job: Job {
        /// Used as `job_id` in job execution operations.
        id: JobId = job.id,
        /// Its name, unique within the organization.
        name: String = job.name,
        /// Archived jobs are hidden from the default list.
        archived: bool = job.archived,
        /// Description of the job.
        description: Option<String> = job.description,
        /// Automatic start condition.
        trigger: Option<TriggerView> = job.trigger.map(Into::into),
        /// Parameters of its runs.
        parameter_definitions: Vec<ParameterView> =
            job.parameters.into_iter().map(Into::into).collect(),
    }
}

output! {
    /// A version of a job's script.
    #[derive(Clone, Debug)]
    pub struct VersionView as "JobVersion" from version: VersionSummary {
        /// Counted from 1 within the job.
        version_number: u32 = version.number,
        /// When it was saved.
        created_at: Timestamp = version.created_at.into(),
        /// The id of the user who saved it.
        created_by: UserId = version.created_by,
        /// True for the version that the next run uses.
        is_current: bool = version.is_current,
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
