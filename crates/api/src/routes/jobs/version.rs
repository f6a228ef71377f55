//! `GET /api/v1/jobs/{job_id}/versions/{version_number}`

use actix_web::web::Json;
use labdata_application::{Error, jobs::get_job::get_job_version};
use labdata_domain::refusal::Resource;

use super::{VersionPath, VersionWithCodeView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Reads one version of a job's script
///
/// Executions keep the version that they ran.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{job_id}/versions/{version_number}",
    operation_id = "get_job_version",
    tag = "jobs",
    responses((status = 200, description = "The version", body = VersionWithCodeView))
)]
pub async fn handle(
    call: Call<Read, NoBody, (), VersionPath>,
) -> ApiResult<Json<VersionWithCodeView>> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let number = call.path.version_number;
    let number = number.ok_or_else(|| Error::not_found(Resource::ScriptVersion))?;
    let (script, is_current) = get_job_version(call.ports(), &call.actor, id, number).await?;
    Ok(Json(VersionWithCodeView::new(script, is_current)))
}
