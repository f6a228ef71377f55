//! `GET /api/v1/job-executions`

use labdata_application::{
    Error,
    executions::{list_executions::list_executions, starters::page_with_starters},
    slots::Held,
};
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
use crate::{About, Call, Listing, Method, NoBody, Operation, Read, Tag, tools::ToolFacts};

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

pub(super) fn operation() -> Operation {
    About {
        name: "list_job_executions",
        method: Method::Get,
        path: "/api/v1/job-executions",
        tag: Tag::JobExecutions,
        summary: "Lists executions, newest first",
        description: "Executions that match all filters given. By pages of `limit`; the header `Link` \
            names the next page.",
        returns: "The executions",
        refusals: &[],
    }
    .runs(run)
    .tool(ToolFacts::of("Lists executions of jobs with their states, newest first."))
}

async fn run(
    call: Call<Read, NoBody, ListExecutionsQuery>,
) -> Result<Listing<ExecutionView>, Error> {
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
    let page = list_executions(&call.services, &call.actor, &filter, query.page).await?;
    let value = page_with_starters(&call.services, &call.actor, page.value).await?;
    let slots = page.slots;
    Ok(Held { value, slots }.into())
}
