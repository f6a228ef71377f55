//! `GET /api/v1/jobs/{job_id}/versions`

use labdata_application::{Error, jobs::get_job::list_job_versions};
use labdata_domain::refusal::Resource;

use super::{JobPath, VersionView};
use crate::{About, Call, Listing, Method, NoBody, Operation, OrNotFound, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_job_versions",
        method: Method::Get,
        path: "/api/v1/jobs/{job_id}/versions",
        tag: Tag::Jobs,
        summary: "Lists the versions of a job's script, newest first",
        description: "Without the scripts, which `get_job_version` reads. By pages of `limit`; the \
            header `Link` names the next page.",
        returns: "The versions",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery, JobPath>) -> Result<Listing<VersionView>, Error> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let page = list_job_versions(&call.services, &call.actor, id, call.query.page).await?;
    Ok(page.into())
}
