//! Jobs in memory.

use async_trait::async_trait;
use labdata_domain::{
    executions::Execution,
    ids::{JobId, OrganizationId},
    jobs::{Job, ScriptVersion, VersionSummary},
    page::{Cursor, Page, PageRequest},
    people::author::NamedUser,
    refusal::Resource,
    triggers::{Arming, Trigger},
};
use labdata_ports::{
    PortError,
    jobs::{JobFilter, JobRepository},
};

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

fake!(
    /// Jobs in memory.
    pub struct InMemoryJobRepository;
);

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

    /// The user who wrote the version of the script that an execution runs.
    pub(crate) fn script_author(&self, execution: &Execution) -> Option<NamedUser> {
        let number = execution.origin.run()?.script_version;
        let mut versions = self.scripts.get(&execution.job_id)?.iter();
        let version = versions.find(|version| version.number == number)?;
        let author = self
            .users
            .iter()
            .find(|user| user.id == version.created_by)?;
        Some(NamedUser::of(author))
    }

    /// Stores the next tick of the job's trigger.
    fn arm(&mut self, job: &Job, before: Option<&Trigger>) {
        match Arming::of_change(before, job.trigger.as_ref()) {
            Arming::Keep => {}
            Arming::Arm {
                first_tick: Some(tick),
            } => {
                self.ticks.insert(job.id, tick);
            }
            Arming::Disarm | Arming::Arm { first_tick: None } => {
                self.ticks.remove(&job.id);
            }
        }
    }

    /// Refuses the job when another one of the organization bears its name.
    fn require_free_name(&self, organization: OrganizationId, job: &Job) -> Result<(), PortError> {
        let taken = owned(&self.jobs, organization)
            .any(|other| other.name == job.name && other.id != job.id);
        if taken {
            Err(PortError::Conflict(job.name_taken()))
        } else {
            Ok(())
        }
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

    async fn add(
        &self,
        organization: OrganizationId,
        job: &Job,
        script: &ScriptVersion,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.require_organization(organization)?;
        state.require_free_name(organization, job)?;
        state.scripts.insert(job.id, vec![script.clone()]);
        state.arm(job, None);
        state.jobs.push(Owned {
            organization,
            thing: job.clone(),
        });
        Ok(())
    }

    async fn update(
        &self,
        organization: OrganizationId,
        revision: u64,
        job: &Job,
        script: Option<&ScriptVersion>,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let stored = state.job(organization, job.id)?.clone();
        if stored.revision != revision {
            return Ok(false);
        }
        state.require_free_name(organization, job)?;
        state.arm(job, stored.trigger.as_ref());
        state
            .scripts
            .entry(job.id)
            .or_default()
            .extend(script.cloned());
        for owned in &mut state.jobs {
            if owned.thing.id == job.id {
                owned.thing = Job {
                    revision: revision + 1,
                    ..job.clone()
                };
            }
        }
        for owned in &mut state.executions {
            if owned.thing.job_id == job.id {
                owned.thing.job_name.clone_from(&job.name);
            }
        }
        Ok(true)
    }

    async fn versions(
        &self,
        organization: OrganizationId,
        job: JobId,
        request: PageRequest,
    ) -> Result<Page<VersionSummary>, PortError> {
        let state = self.memory.lock();
        let current = state.job(organization, job)?.version_number;
        let versions = state.scripts.get(&job).into_iter().flatten();
        let summaries = versions.map(|script| {
            VersionSummary::new(script.number, script.created_at, script.created_by, current)
        });
        Ok(page(summaries, request, VersionSummary::place))
    }

    async fn version(
        &self,
        organization: OrganizationId,
        job: JobId,
        number: u32,
    ) -> Result<ScriptVersion, PortError> {
        let state = self.memory.lock();
        state.job(organization, job)?;
        let mut versions = state.scripts.get(&job).into_iter().flatten();
        let found = versions.find(|script| script.number == number);
        found
            .cloned()
            .ok_or(PortError::NotFound(Resource::ScriptVersion))
    }
}
