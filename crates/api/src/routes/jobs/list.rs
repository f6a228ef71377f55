//! `GET /api/v1/jobs`

use labdata_application::jobs::list_jobs::list_jobs;
use labdata_application::slots::Work;
use labdata_domain::page::PageRequest;
use labdata_ports::jobs::JobFilter;
use labdata_request_body::{
    fields::{optional, or, page},
    readers::{boolean, text},
    shape,
};

use super::JobView;
use crate::http::{ApiResult, Call, Listing, NoBody, Read};

shape! {
    /// Filters of the list of jobs.
    #[derive(Clone, Debug)]
    pub struct ListJobsQuery {
        /// Only the job of exactly this name.
        name: Option<String> = optional(text(..)),
        /// Archived jobs as well as active ones.
        archived: bool = or(false, boolean()),
        page: PageRequest = page(None),
    }
}

/// Lists jobs, newest first
///
/// All that match, unless `limit` is given.
#[utoipa::path(
    get,
    path = "/api/v1/jobs",
    operation_id = "list_jobs",
    tag = "jobs",
    responses((status = 200, description = "The jobs", body = Vec<JobView>))
)]
pub async fn handle(call: Call<Read, NoBody, ListJobsQuery>) -> ApiResult<Listing<JobView>> {
    let filter = JobFilter {
        name: call.query.name.clone(),
        include_archived: call.query.archived,
    };
    let slot = call
        .app
        .ports
        .slots
        .enter(Work::Page, call.actor.organization)
        .await?;
    let page = list_jobs(call.ports(), &call.actor, &filter, call.query.page).await?;
    Ok(Listing::of(page, Into::into).counted(slot))
}
