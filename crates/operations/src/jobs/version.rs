//! `GET /api/v1/jobs/{job_id}/versions/{version_number}`

use labdata_application::{Error, jobs::get_job::get_job_version};
use labdata_domain::{ids::JobId, refusal::Resource};
use labdata_request_body::{
    Reader as _,
    fields::required,
    output,
    readers::{MaybeId, id, integer},
    shape,
};

use super::VersionView;
use crate::{About, Call, Method, NoBody, Operation, OrNotFound, Read, Tag};

shape! {
    /// The path of a version of a job's script.
    #[derive(Clone, Copy, Debug)]
    pub struct VersionPath {
        /// The job's id
        job_id: MaybeId<JobId> = required(id()),
        /// The version's number
        version_number: Option<u32> =
            required(
                integer(i64::MIN..=i64::MAX)
                    .map(|number| u32::try_from(number).ok())
                    .with("minimum", 1)
                    .with("maximum", u32::MAX),
            ),
    }
}

output! {
    /// A version of a job's script, and the script.
    #[derive(Clone, Debug)]
    pub struct VersionWithCodeView as "JobVersionWithCode" {
        #[flatten]
        version: VersionView,
        /// Python source.
        code: String,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_job_version",
        method: Method::Get,
        path: "/api/v1/jobs/{job_id}/versions/{version_number}",
        tag: Tag::Jobs,
        summary: "Reads one version of a job's script",
        description: "Executions keep the version that they ran.",
        returns: "The version",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), VersionPath>) -> Result<VersionWithCodeView, Error> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let number = call.path.version_number;
    let number = number.ok_or_else(|| Error::not_found(Resource::ScriptVersion))?;
    let (script, is_current) = get_job_version(&call.services, &call.actor, id, number).await?;
    Ok(VersionWithCodeView {
        version: VersionView {
            version_number: script.number,
            created_at: script.created_at.into(),
            created_by: script.created_by,
            is_current,
        },
        code: script.code,
    })
}
