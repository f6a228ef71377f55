//! Opens an execution for a script that runs outside the platform.

use labdata_domain::{
    executions::{Execution, started_by::StartedBy},
    ids::{ExecutionId, JobId},
    jobs::{Job, JobName},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::Resource,
};

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// The execution to open.
#[derive(Clone, Debug, Default)]
pub struct StartExecution {
    /// The job to run under, as the caller wrote it; wins over the name.
    pub job_id: Option<String>,
    /// The job's name, created if missing; the default job's unless given.
    pub job_name: Option<String>,
    /// After how many minutes the platform fails it unless it is closed before.
    pub timeout_minutes: Option<u32>,
}

/// Opens an execution, which is running from then on.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when the job is not the
/// organization's; `Invalid` when no job can bear the name.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn start_execution(
    services: &Services,
    actor: &Actor,
    command: StartExecution,
) -> Result<Execution, Error> {
    open(services, actor, command, |opened| opened).await
}

/// Opens an execution for what an agent writes, under the job of that name.
///
/// # Errors
/// `Forbidden` without the write scope and for the key of a run.
pub(crate) async fn start_agent_execution(
    services: &Services,
    actor: &Actor,
    job_name: &str,
    timeout_minutes: u32,
) -> Result<Execution, Error> {
    let command = StartExecution {
        job_id: None,
        job_name: Some(job_name.to_owned()),
        timeout_minutes: Some(timeout_minutes),
    };
    open(services, actor, command, Execution::of_agent).await
}

async fn open(
    services: &Services,
    actor: &Actor,
    command: StartExecution,
    of_origin: impl FnOnce(Execution) -> Execution,
) -> Result<Execution, Error> {
    actor.require(Scope::Write)?;
    require_reserve(services)?;
    actor.may(GuardedAction::OpenExecution)?;
    let job = match command.job_id {
        Some(id) => {
            // A malformed id names no job: 404, as for an unknown one.
            let id: JobId = id.parse().map_err(|_| Error::not_found(Resource::Job))?;
            services.jobs.get(actor.organization, id).await?
        }
        None => ensure_job(services, actor, command.job_name.as_deref()).await?,
    };
    let now = services.clock.now();
    let id = ExecutionId::new(services.ids.next_id());
    let opened = Execution::start(id, job.id, job.name, command.timeout_minutes, now);
    let execution = of_origin(opened);
    let started_by = StartedBy::key(actor.user, actor.api_key);
    services
        .executions
        .add(actor.organization, &execution, started_by)
        .await?;
    Ok(execution)
}

/// The job of that name, or the default job; created when missing.
///
/// # Errors
/// `Invalid` when no job can bear the name.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn ensure_job(
    services: &Services,
    actor: &Actor,
    name: Option<&str>,
) -> Result<Job, Error> {
    let name = match name {
        Some(name) => JobName::parse(name).map_err(Error::refused)?,
        None => JobName::default_job(),
    };
    let candidate = Job::new(
        JobId::new(services.ids.next_id()),
        name,
        services.clock.now(),
    );
    // The candidate is dropped if the job exists, also if another request creates it just now.
    Ok(services.jobs.ensure(actor.organization, &candidate).await?)
}
