//! `GET /api/v1/jobs/{job_id}`

use actix_web::web::Json;
use labdata_application::jobs::get_job::get_job;
use labdata_domain::refusal::Resource;
use serde::Serialize;
use utoipa::ToSchema;

use super::{JobPath, JobView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// A job and its current script.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = JobWithCode)]
pub struct JobWithCodeView {
    #[serde(flatten)]
    job: JobView,
    /// Python source; null where the job is only a name for off-platform scripts.
    code: Option<String>,
    /// The version that this is, counted from 1; null without a script.
    version_number: Option<u32>,
}

/// Reads one job with its script
///
/// The job with the current version of its script, its parameters and its trigger.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{job_id}",
    operation_id = "get_job",
    tag = "jobs",
    responses((status = 200, description = "The job", body = JobWithCodeView))
)]
pub async fn handle(call: Call<Read, NoBody, (), JobPath>) -> ApiResult<Json<JobWithCodeView>> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let (job, script) = get_job(call.ports(), &call.actor, id).await?;
    Ok(Json(JobWithCodeView {
        version_number: job.version_number,
        job: job.into(),
        code: script.map(|script| script.code),
    }))
}
