//! `GET /api/v1/jobs/{job_id}`

use labdata_application::{Error, jobs::get_job::get_job};
use labdata_domain::refusal::Resource;
use labdata_request_body::output;

use super::{DescribedJob, JobPath, JobView};
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag, tools::ToolFacts};

output! {
    /// A job and its current script.
    #[derive(Clone, Debug)]
    pub struct JobWithCodeView as "JobWithCode" {
        #[flatten]
        job: JobView,
        /// Python source; null where the job is only a name for off-platform scripts.
        code: Option<String>,
        /// The version that this is, counted from 1; null without a script.
        version_number: Option<u32>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_job",
        method: Method::Get,
        path: "/api/v1/jobs/{job_id}",
        tag: Tag::Jobs,
        summary: "Reads one job with its script",
        description: "The job with the current version of its script, its parameters and its trigger.",
        returns: "The job",
        refusals: &[],
    }
    .runs(run)
    .tool(ToolFacts::of("Shows a job with the current version of its script."))
}

async fn run(call: Call<Read, NoBody, (), JobPath>) -> Result<JobWithCodeView, Error> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let (job, script) = get_job(&call.services, &call.actor, id).await?;
    Ok(JobWithCodeView {
        version_number: job.version_number,
        job: DescribedJob::of(job, call.services.triggered_version).into(),
        code: script.map(|script| script.code),
    })
}
