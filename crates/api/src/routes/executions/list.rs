//! `GET /api/v1/job-executions`

use labdata_application::executions::{
    list_executions::list_executions, starters::page_with_starters,
};
use labdata_application::slots::Work;
use labdata_domain::{
    executions::ExecutionState,
    ids::{FileId, JobId},
    page::{DEFAULT_LIMIT, PageRequest},
};
use labdata_ports::executions::ExecutionFilter;
use labdata_request_body::{
    fields::{optional, page},
    readers::{MaybeId, choice, id},
    shape,
};

use super::ExecutionView;
use crate::http::{ApiResult, Call, Listing, NoBody, Read};

shape! {
    /// Filters of the list of executions.
    #[derive(Clone, Debug)]
    pub struct ListExecutionsQuery {
        /// Only those of this job.
        job_id: Option<MaybeId<JobId>> = optional(id()),
        /// Only those in this state.
        status: Option<&'static str> =
            optional(choice(ExecutionState::NAMES.map(|name| (name, name)))),
        /// Only runs that this file triggered or was given to.
        trigger_file_id: Option<MaybeId<FileId>> = optional(id()),
        page: PageRequest = page(Some(DEFAULT_LIMIT)),
    }
}

/// Lists executions, newest first
///
/// Executions that match all filters given. By pages of `limit`; the header `Link` names the next
/// page.
#[utoipa::path(
    get,
    path = "/api/v1/job-executions",
    operation_id = "list_job_executions",
    tag = "job-executions",
    responses((status = 200, description = "The executions", body = Vec<ExecutionView>))
)]
pub async fn handle(
    call: Call<Read, NoBody, ListExecutionsQuery>,
) -> ApiResult<Listing<ExecutionView>> {
    let query = &call.query;
    let (job, file) = (query.job_id, query.trigger_file_id);
    let (job, file) = match (job.map(MaybeId::known), file.map(MaybeId::known)) {
        // No execution is of a job or a file whose id cannot be one.
        (Some(None), _) | (_, Some(None)) => return Ok(Listing::empty()),
        (job, file) => (job.flatten(), file.flatten()),
    };
    let filter = ExecutionFilter {
        job,
        status: query.status.map(str::to_owned),
        trigger_file: file,
    };
    let slot = call
        .app
        .ports
        .slots
        .enter(Work::Page, call.actor.organization)
        .await?;
    let page = list_executions(call.ports(), &call.actor, &filter, query.page).await?;
    let page = page_with_starters(call.ports(), &call.actor, page).await?;
    Ok(Listing::of(page, ExecutionView::from).counted(slot))
}
