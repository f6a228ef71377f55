//! `GET /api/v1/jobs/{job_id}/versions`

use labdata_application::jobs::get_job::list_job_versions;
use labdata_domain::refusal::Resource;

use super::{JobPath, VersionView};
use crate::http::{ApiResult, Call, Listing, NoBody, OrNotFound, PageQuery, Read};

/// Lists the versions of a job's script, newest first
///
/// Without the scripts, which `get_job_version` reads. By pages of `limit`; the header `Link` names
/// the next page.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{job_id}/versions",
    operation_id = "list_job_versions",
    tag = "jobs",
    responses((status = 200, description = "The versions", body = Vec<VersionView>))
)]
pub async fn handle(
    call: Call<Read, NoBody, PageQuery, JobPath>,
) -> ApiResult<Listing<VersionView>> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let page = list_job_versions(call.ports(), &call.actor, id, call.query.page).await?;
    Ok(Listing::of(page, Into::into))
}
