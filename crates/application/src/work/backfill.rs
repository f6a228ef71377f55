//! Runs a job for files that were uploaded earlier.

use std::collections::BTreeSet;

use labdata_domain::{
    files::FileRefusal,
    ids::{ExecutionId, FileId, InstrumentId, JobId},
    jobs::with_defaults,
    people::{actor::Actor, scope::Scope},
    refusal::{NotFound, Refusal, Resource},
    triggers::{Backfill, BackfillFiles, BackfillOnly, MAX_BACKFILL_RUNS, StoredUpload},
    work::NewRun,
};
use labdata_ports::{PortError, triggers::BackfillRequest};
use serde_json::Map;
use time::OffsetDateTime;

use crate::{Error, Services, maintenance::disk_reserve::require_reserve};

/// Input of a backfill.
#[derive(Clone, Debug, Default)]
pub struct BackfillJob {
    /// The files, as the caller wrote their ids; `None` for those of the job's file trigger.
    pub files: Option<Vec<String>>,
    /// Only files of this instrument.
    pub instrument: Option<InstrumentId>,
    /// Only files confirmed at this time or later.
    pub uploaded_from: Option<OffsetDateTime>,
    /// Only files confirmed before this time.
    pub uploaded_to: Option<OffsetDateTime>,
    /// Restriction by earlier runs.
    pub only: BackfillOnly,
    /// Queues nothing.
    pub is_dry_run: bool,
}

/// Runs of a backfill, oldest file first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfilled {
    /// The files, one for each run.
    pub files: Vec<FileId>,
    /// The executions; empty after a dry run.
    pub executions: Vec<ExecutionId>,
}

/// Queues a run of the version that triggers run of a job's script for each file that was uploaded earlier and that
/// the job's file trigger would have taken, or for each named file, oldest first, at most
/// [`MAX_BACKFILL_RUNS`] of them. The runs are the caller's, with default parameters.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when job, instrument or a named file are not the
/// organization's; `Invalid` when the job is archived or has no script that may run, has no file trigger and no file
/// is named, or a named file is not confirmed.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn backfill_job(
    services: &Services,
    actor: &Actor,
    id: JobId,
    command: BackfillJob,
) -> Result<Backfilled, Error> {
    actor.require(Scope::Write)?;
    actor.rights.require_all_tables().map_err(Error::refused)?;
    require_reserve(services)?;
    let job = services.jobs.get(actor.organization, id).await?;
    let script_version = job
        .backfill_version(services.triggered_version)
        .map_err(Error::refused)?;
    // Only whether it exists: an unknown one would select no file, and that would look like a backfill with nothing
    // to do.
    if let Some(instrument) = command.instrument {
        services
            .instruments
            .get(actor.organization, instrument)
            .await?;
    }
    let is_dry_run = command.is_dry_run;
    let only = command.only;
    let files = considered(command)?;
    let backfill = Backfill::of(&job, &files, only).map_err(Error::refused)?;
    let parameters = with_defaults(&job.parameters, Map::new());
    let queued_at = services.clock.now();
    let decide = |file: &StoredUpload| {
        backfill.takes(file).then(|| NewRun {
            id: ExecutionId::new(services.ids.next_id()),
            job: id,
            script_version,
            trigger_file: Some(file.id),
            parameters: parameters.clone(),
            source: file.upload.source(),
            started_by: actor.user,
            api_key: Some(actor.api_key),
            scopes: actor.run_scopes(),
            trigger: None,
            queued_at,
        })
    };
    let request = BackfillRequest {
        job: id,
        files,
        limit: MAX_BACKFILL_RUNS,
        is_dry_run,
    };
    let queued = services
        .triggers
        .backfill(actor.organization, &request, &decide);
    let runs = match queued.await {
        Err(PortError::NotFound(Resource::File)) => {
            return Err(unusable_file(services, actor, &request.files).await?);
        }
        runs => runs?,
    };
    let executions = runs.iter().map(|run| run.id);
    Ok(Backfilled {
        files: runs.iter().filter_map(|run| run.trigger_file).collect(),
        // Ids of a dry run belong to no execution.
        executions: executions.filter(|_| !is_dry_run).collect(),
    })
}

/// The refusal of the first named file that is unknown or not confirmed.
async fn unusable_file(
    services: &Services,
    actor: &Actor,
    files: &BackfillFiles,
) -> Result<Error, Error> {
    if let BackfillFiles::Named(ids) = files {
        for id in ids {
            let refusal = match services.files.get(actor.organization, *id).await {
                Err(PortError::NotFound(resource)) => Refusal::from(NotFound(resource)),
                Err(error) => return Err(error.into()),
                Ok(file) if file.state.uploaded_at().is_none() => {
                    Refusal::from(FileRefusal::NotConfirmed)
                }
                Ok(_) => continue,
            };
            return Ok(refusal.within(format!("{id}: ")).into());
        }
    }
    // The file was deleted or confirmed since.
    Ok(Error::not_found(Resource::File))
}

fn considered(command: BackfillJob) -> Result<BackfillFiles, Error> {
    let Some(files) = command.files else {
        return Ok(BackfillFiles::Triggered {
            instrument: command.instrument,
            uploaded_from: command.uploaded_from,
            uploaded_to: command.uploaded_to,
        });
    };
    // A malformed id names no file: 404, as for an unknown one.
    let ids: Result<BTreeSet<FileId>, _> = files.iter().map(|file| file.parse()).collect();
    let ids = ids.map_err(|_| Error::not_found(Resource::File))?;
    Ok(BackfillFiles::Named(ids))
}
