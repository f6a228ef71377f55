//! `POST /api/v1/job-executions/{execution_id}/revert`

use labdata_application::{
    Error,
    data::revert_execution::{preview_revert, revert_execution},
};
use labdata_domain::{data::revert::RevertReport, refusal::Resource};
use labdata_request_body::{fields::or, output, readers::boolean, shape};
use serde_json::json;

use super::{ExecutionPath, changes::ChangesView};
use crate::{About, Call, Method, Operation, OptionalJson, OrNotFound, Tag, Write};

shape! {
    /// How to revert. The body may be empty or null.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RevertBody {
        /// Shows what the execution changed, or why it cannot be reverted, and changes nothing.
        dry_run: bool = or(false, boolean()),
    }
    example json!({"dry_run": true});
}

output! {
    /// Result of a revert.
    #[derive(Debug)]
    pub struct RevertView as "RevertResult" from report: RevertReport {
        /// Rows deleted that the execution had created.
        deleted_count: u64 = report.deleted_count,
        /// Points of series deleted with them.
        raws_deleted_count: u64 = report.raws_deleted_count,
        /// Created rows that no longer existed.
        skipped_count: u64 = report.skipped_count,
        /// Changes that could not be undone.
        warnings: Vec<String> = report.warnings,
    }
}

output! {
    /// What a revert did; what the execution changed, of a dry run.
    #[derive(Debug)]
    pub enum RevertResponseView as "RevertResponse" {
        /// What was undone.
        Done(RevertView),
        /// What the execution changed.
        Preview(ChangesView),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "revert_job_execution",
        method: Method::Post,
        path: "/api/v1/job-executions/{execution_id}/revert",
        tag: Tag::JobExecutions,
        summary: "Revert an execution",
        description: "Deletes the rows that the execution created, and their series, in one \
            transaction. Updates, deletes and series written to rows that existed before are reported \
            as warnings. A dry run needs the read scope too, and responds like \
            `GET /job-executions/{execution_id}/changes`.",
        returns: "What was undone, or of a dry run what was changed",
        refusals: &[],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, OptionalJson<RevertBody>, (), ExecutionPath>,
) -> Result<RevertResponseView, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    Ok(if call.body.unwrap_or_default().dry_run {
        let report = preview_revert(&call.ports, &call.actor, id).await?;
        RevertResponseView::Preview(report.into())
    } else {
        let report = revert_execution(&call.ports, &call.actor, id).await?;
        RevertResponseView::Done(report.into())
    })
}
