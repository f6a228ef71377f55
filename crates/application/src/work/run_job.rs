//! Runs a job's script on the platform.

use labdata_domain::{
    executions::Execution,
    files::{FileRefusal, FileState},
    ids::{ExecutionId, FileId, JobId},
    jobs::effective_parameters,
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
    work::{NewRun, check_parameter_bytes},
};
use serde_json::{Map, Value};

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Input of a run.
#[derive(Clone, Debug, Default)]
pub struct RunJob {
    /// Values of parameters; defaults are filled in.
    pub parameters: Map<String, Value>,
    /// The file that it is about, as the caller wrote it.
    pub file: Option<String>,
}

/// Queues a run of the current version of a job's script.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when job or file are not the
/// organization's; `Invalid` when the job is archived or has no script, a required
/// parameter has no value, a value does not fit its parameter, or the file has no bytes yet.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn run_job(
    services: &Services,
    actor: &Actor,
    id: JobId,
    command: RunJob,
) -> Result<Execution, Error> {
    actor.require(Scope::Write)?;
    actor.rights.require_all_tables().map_err(Error::refused)?;
    require_reserve(services)?;
    let job = services.jobs.get(actor.organization, id).await?;
    let script_version = job.runnable_version().map_err(Error::refused)?;
    let trigger_file = match command.file {
        Some(file) => Some(confirmed(services, actor, &file).await?),
        None => None,
    };
    let parameters =
        effective_parameters(&job.parameters, command.parameters).map_err(Error::refused)?;
    check_size(&parameters)?;
    let run = NewRun {
        id: ExecutionId::new(services.ids.next_id()),
        job: id,
        script_version,
        trigger_file,
        parameters,
        source: None,
        started_by: actor.user,
        api_key: Some(actor.api_key),
        trigger: None,
        scopes: actor.run_scopes(),
        queued_at: services.clock.now(),
    };
    Ok(services.executions.queue(actor.organization, &run).await?)
}

async fn confirmed(services: &Services, actor: &Actor, file: &str) -> Result<FileId, Error> {
    // A malformed id names no file: 404, as for an unknown one.
    let id: FileId = file.parse().map_err(|_| Error::not_found(Resource::File))?;
    let file = services.files.get(actor.organization, id).await?;
    if matches!(file.state, FileState::Confirmed { .. }) {
        Ok(id)
    } else {
        Err(Error::refused(FileRefusal::NotConfirmed))
    }
}

/// Checks the size of the parameters, which the script gets as one environment variable.
fn check_size(parameters: &Map<String, Value>) -> Result<(), Error> {
    let json = serde_json::to_string(parameters)
        .map_err(|error| Error::Internal(format!("parameters: {error}")))?;
    check_parameter_bytes(json.len()).map_err(Error::refused)
}
