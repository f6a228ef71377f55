//! Creates a job.

use labdata_domain::{
    actor::Actor,
    ids::JobId,
    job::{Job, JobName, ScriptVersion},
    scope::Scope,
};

use crate::{Error, Ports};

/// The job to create.
#[derive(Clone, Debug)]
pub struct CreateJob {
    /// Its name, unique within the organization.
    pub name: String,
    /// Python source.
    pub code: String,
    /// What it does.
    pub description: Option<String>,
}

/// Creates a job with the first version of its script.
///
/// # Errors
/// [`Error::Forbidden`] without the write scope; [`Error::Invalid`] when no job can bear the name;
/// [`Error::Conflict`] when another one bears it.
pub async fn create_job(ports: &Ports, actor: &Actor, command: CreateJob) -> Result<Job, Error> {
    actor.require(Scope::Write)?;
    let name = parse_name(&command.name)?;
    let script = ScriptVersion {
        number: 1,
        code: command.code,
        created_at: ports.clock.now(),
        created_by: actor.user,
    };
    let job = Job {
        description: command.description.filter(|text| !text.is_empty()),
        version_number: Some(script.number),
        ..Job::new(JobId::new(ports.ids.next_id()), name, script.created_at)
    };
    ports.jobs.add(actor.organization, &job, &script).await?;
    Ok(job)
}

/// The name of a job.
pub(crate) fn parse_name(text: &str) -> Result<JobName, Error> {
    JobName::parse(text).map_err(|error| Error::Invalid(error.to_string()))
}
