//! Jobs and the versions of their scripts.

use async_trait::async_trait;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    jobs::{Job, ScriptVersion, VersionSummary},
    page::{Page, PageRequest},
};

use crate::PortError;

/// Filter of a list of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only the job of exactly this name.
    pub name: Option<String>,
    /// Archived jobs as well.
    pub include_archived: bool,
}

/// Repository of jobs and the versions of their scripts.
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

    /// The job of the candidate's name, created as `candidate` (which has no script) when missing.
    /// Racing calls MUST end with one job.
    async fn ensure(&self, organization: OrganizationId, candidate: &Job)
    -> Result<Job, PortError>;

    /// Stores a new job with the first version of its script, whose number the job names, and its
    /// trigger.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the organization has a job of this name; of racing calls
    /// exactly one MUST succeed.
    async fn add(
        &self,
        organization: OrganizationId,
        job: &Job,
        script: &ScriptVersion,
    ) -> Result<(), PortError>;

    /// Stores a change of a job that was read as `revision`, with the new version of its script, all
    /// or nothing. Returns false if the job has changed since. The stored revision is one higher. A
    /// schedule whose trigger was armed again MUST fire next at its first tick after that time, and
    /// any other one as before.
    ///
    /// # Errors
    /// [`PortError::NotFound`]; [`PortError::Conflict`] when another job bears the name.
    async fn update(
        &self,
        organization: OrganizationId,
        revision: u64,
        job: &Job,
        script: Option<&ScriptVersion>,
    ) -> Result<bool, PortError>;

    /// The versions of a job's script, newest first; none where it has no script.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the job is not the organization's.
    async fn versions(
        &self,
        organization: OrganizationId,
        job: JobId,
        page: PageRequest,
    ) -> Result<Page<VersionSummary>, PortError>;

    /// One version of a job's script.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the organization has no such job, or the job no such version.
    async fn version(
        &self,
        organization: OrganizationId,
        job: JobId,
        number: u32,
    ) -> Result<ScriptVersion, PortError>;
}
