//! Jobs in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{JobId, OrganizationId},
    job::Job,
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    jobs::{JobFilter, JobRepository},
};

use crate::{
    Memory,
    memory::{Owned, State, owned},
    paging::page,
};

/// Jobs in memory.
#[derive(Clone, Debug)]
pub struct InMemoryJobRepository {
    memory: Memory,
}

impl InMemoryJobRepository {
    /// The repository over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

impl State {
    /// The job of the candidate's name, stored as the candidate when missing.
    pub(crate) fn ensure_job(
        &mut self,
        organization: OrganizationId,
        candidate: &Job,
    ) -> Result<Job, PortError> {
        self.require_organization(organization)?;
        if let Some(job) = owned(&self.jobs, organization).find(|job| job.name == candidate.name) {
            return Ok(job.clone());
        }
        self.jobs.push(Owned {
            organization,
            thing: candidate.clone(),
        });
        Ok(candidate.clone())
    }
}

#[async_trait]
impl JobRepository for InMemoryJobRepository {
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &JobFilter,
        request: PageRequest,
    ) -> Result<Page<Job>, PortError> {
        let state = self.memory.lock();
        let jobs = owned(&state.jobs, organization)
            .filter(|job| filter.include_archived || !job.archived)
            .filter(|job| filter.name.as_ref().is_none_or(|name| job.name == *name))
            .cloned();
        Ok(page(jobs, request, |job| Cursor {
            at: job.created_at,
            id: job.id.as_uuid(),
        }))
    }

    async fn get(&self, organization: OrganizationId, id: JobId) -> Result<Job, PortError> {
        self.memory.lock().job(organization, id).cloned()
    }

    async fn ensure(
        &self,
        organization: OrganizationId,
        candidate: &Job,
    ) -> Result<Job, PortError> {
        self.memory.lock().ensure_job(organization, candidate)
    }
}
