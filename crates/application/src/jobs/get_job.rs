//! Reads a job, and the versions of its script.

use labdata_domain::{
    ids::JobId,
    jobs::{Job, ScriptVersion, VersionSummary, is_current_version},
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// A job with its current script; none where the job is only a name for off-platform scripts.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_job(
    services: &Services,
    actor: &Actor,
    id: JobId,
) -> Result<(Job, Option<ScriptVersion>), Error> {
    actor.require(Scope::Read)?;
    with_script(services, actor, id).await
}

/// A job with its current script. Versions never change, so the two belong together.
pub(crate) async fn with_script(
    services: &Services,
    actor: &Actor,
    id: JobId,
) -> Result<(Job, Option<ScriptVersion>), Error> {
    let job = services.jobs.get(actor.organization, id).await?;
    let script = match job.version_number {
        Some(number) => Some(
            services
                .jobs
                .version(actor.organization, id, number)
                .await?,
        ),
        None => None,
    };
    Ok((job, script))
}

/// The versions of a job's script, newest first.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_job_versions(
    services: &Services,
    actor: &Actor,
    id: JobId,
    page: PageRequest,
) -> Result<Page<VersionSummary>, Error> {
    actor.require(Scope::Read)?;
    Ok(services.jobs.versions(actor.organization, id, page).await?)
}

/// One version of a job's script, and whether it is the current one.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` when there is no such job, or
/// no such version of it.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_job_version(
    services: &Services,
    actor: &Actor,
    id: JobId,
    number: u32,
) -> Result<(ScriptVersion, bool), Error> {
    actor.require(Scope::Read)?;
    let script = services
        .jobs
        .version(actor.organization, id, number)
        .await?;
    let job = services.jobs.get(actor.organization, id).await?;
    let is_current = is_current_version(number, job.version_number);
    Ok((script, is_current))
}
