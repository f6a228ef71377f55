//! Creates a job.

use labdata_domain::{
    actor::Actor,
    ids::JobId,
    job::{Job, JobName, ParameterDefinition, ScriptVersion, check_parameters},
    scope::Scope,
};

use crate::{Error, Ports, check_script::check_script};

/// The job to create.
#[derive(Clone, Debug)]
pub struct CreateJob {
    /// Its name, unique within the organization.
    pub name: String,
    /// Python source.
    pub code: String,
    /// What it does.
    pub description: Option<String>,
    /// What its runs are asked for.
    pub parameters: Vec<ParameterDefinition>,
}

/// Creates a job with the first version of its script.
///
/// # Errors
/// [`Error::Forbidden`] without the write scope; [`Error::Invalid`] when no job can bear the name,
/// the code is not Python or the parameters make no sense; [`Error::Conflict`] when another job
/// bears the name.
pub async fn create_job(ports: &Ports, actor: &Actor, command: CreateJob) -> Result<Job, Error> {
    actor.require(Scope::Write)?;
    let name = parse_name(&command.name)?;
    check_parameters(&command.parameters).map_err(|error| Error::Invalid(error.to_string()))?;
    check_script(&command.code).await?;
    let script = ScriptVersion {
        number: 1,
        code: command.code,
        created_at: ports.clock.now(),
        created_by: actor.user,
    };
    let job = Job {
        description: command.description.filter(|text| !text.is_empty()),
        version_number: Some(script.number),
        parameters: command.parameters,
        ..Job::new(JobId::new(ports.ids.next_id()), name, script.created_at)
    };
    ports.jobs.add(actor.organization, &job, &script).await?;
    Ok(job)
}

/// The name of a job.
pub(crate) fn parse_name(text: &str) -> Result<JobName, Error> {
    JobName::parse(text).map_err(|error| Error::Invalid(error.to_string()))
}
