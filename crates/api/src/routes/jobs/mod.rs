//! `/api/v1/jobs`

use labdata_domain::job::Job;
use serde::Serialize;
use utoipa::ToSchema;

pub mod list;

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
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        Self {
            id: job.id.to_string(),
            name: job.name,
            archived: job.archived,
            description: job.description,
        }
    }
}
