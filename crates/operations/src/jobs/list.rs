//! `GET /api/v1/jobs`

use labdata_application::{Error, jobs::list_jobs::list_jobs, slots::Held};
use labdata_domain::page::{Page, PageRequest};
use labdata_ports::jobs::JobFilter;
use labdata_request_body::{
    fields::{optional, or, page},
    readers::{boolean, text},
    shape,
};

use super::{DescribedJob, JobView};
use crate::{About, Call, Listing, Method, NoBody, Operation, Read, Tag, tools::ToolFacts};

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

pub(super) fn operation() -> Operation {
    About {
        name: "list_jobs",
        method: Method::Get,
        path: "/api/v1/jobs",
        tag: Tag::Jobs,
        summary: "Lists jobs, newest first",
        description: "All that match, unless `limit` is given.",
        returns: "The jobs",
        refusals: &[],
    }
    .runs(run)
    .tool(ToolFacts::of(
        "Lists jobs: Python scripts that the platform runs, newest first.",
    ))
}

async fn run(call: Call<Read, NoBody, ListJobsQuery>) -> Result<Listing<JobView>, Error> {
    let filter = JobFilter {
        name: call.query.name,
        include_archived: call.query.archived,
    };
    let Held { value, slots } =
        list_jobs(&call.services, &call.actor, &filter, call.query.page).await?;
    let triggered = call.services.triggered_version;
    let value = Page {
        items: value
            .items
            .into_iter()
            .map(|job| DescribedJob::of(job, triggered))
            .collect(),
        next: value.next,
    };
    Ok(Held { value, slots }.into())
}
