//! `/api/v1/jobs`

use labdata_domain::{
    ids::{JobId, UserId},
    jobs::{Job, NotPublished, PublishStatus, TriggeredVersion, VersionSummary},
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
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

names! {
    /// Status of a script on its way to being published.
    pub JobPublishStatus = PublishStatus::ALL.map(PublishStatus::as_str);
}

/// A job, and why its trigger starts nothing.
#[derive(Clone, Debug)]
pub struct DescribedJob {
    job: Job,
    trigger_blocked: Option<NotPublished>,
}

impl DescribedJob {
    /// The job on a platform whose triggers run that version.
    pub(super) fn of(job: Job, triggered: TriggeredVersion) -> Self {
        Self {
            trigger_blocked: job.trigger_blocked(triggered),
            job,
        }
    }
}

output! {
    /// A job.
    #[derive(Clone, Debug)]
    pub struct JobView as "Job" from described: DescribedJob {
        /// Used as `job_id` in job execution operations.
        id: JobId = described.job.id,
        /// Its name, unique within the organization.
        name: String = described.job.name,
        /// Archived jobs are hidden from the default list.
        archived: bool = described.job.archived,
        /// Description of the job.
        description: Option<String> = described.job.description,
        /// Automatic start condition.
        trigger: Option<TriggerView> = described.job.trigger.map(Into::into),
        /// Reason for which the trigger starts nothing: only published versions run, and the job has
        /// none. Else null.
        trigger_blocked: Option<String> =
            described.trigger_blocked.map(|reason| reason.to_string()),
        /// Status of the current version of its script: a changed script is a draft, and admins publish.
        publish_status: JobPublishStatus = described.job.publish_status.as_str().into(),
        /// Version of its script that an admin published last, which may be an older one; null before.
        published_version: Option<u32> = described.job.published_version,
        /// Parameters of its runs.
        parameter_definitions: Vec<ParameterView> =
            described.job.parameters.into_iter().map(Into::into).collect(),
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
