//! Jobs.

use async_trait::async_trait;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    job::Job,
    page::{Page, PageRequest},
};

use crate::PortError;

/// Which jobs are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only the job of exactly this name.
    pub name: Option<String>,
    /// Archived jobs as well.
    pub include_archived: bool,
}

/// Where jobs are kept.
#[async_trait]
pub trait JobRepository: Send + Sync {
    /// The organization's jobs that match, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &JobFilter,
        page: PageRequest,
    ) -> Result<Page<Job>, PortError>;

    /// One of the organization's jobs.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: JobId) -> Result<Job, PortError>;

    /// The job of the candidate's name, created as `candidate` when missing. Racing calls MUST
    /// end with one job.
    async fn ensure(&self, organization: OrganizationId, candidate: &Job)
    -> Result<Job, PortError>;
}
