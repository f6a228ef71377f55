//! `POST /api/v1/job-executions/{execution_id}/revert`

use labdata_application::{
    Error,
    data::revert_execution::{RevertExecution, revert_execution},
};
use labdata_domain::{
    data::{restore::OnConflict, revert::RevertReport},
    ids::ExecutionId,
    refusal::Resource,
};
use labdata_request_body::{
    fields::or,
    output,
    readers::{boolean, choice},
    shape,
};
use serde_json::json;

use super::ExecutionPath;
use crate::{About, Call, Method, Operation, OptionalJson, OrNotFound, Tag, Write};

shape! {
    /// Options of a revert. The body may be empty or null.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RevertBody {
        /// Reports what the revert would do, or refuses where it would, and changes nothing.
        dry_run: bool = or(false, boolean()),
        /// Also restores updated and deleted rows, and replaced and deleted series.
        restore: bool = or(false, boolean()),
        /// Treatment of rows that another execution changed since: `refuse` undoes nothing, `skip` leaves
        /// them as they are. With `restore` only.
        on_conflict: OnConflict = or("refuse", choice(OnConflict::ALL)),
    }
    example json!({"restore": true, "dry_run": true});
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
        /// Annotations of images deleted that the execution had saved; left out if there were none.
        #[optional]
        annotations_deleted_count: Option<u64> =
            Some(report.annotations_deleted_count).filter(|count| *count > 0),
        /// Changes that could not be undone.
        warnings: Vec<String> = report.warnings,
        /// Rows that are what they were before the execution. With `restore` only.
        #[optional]
        restored_count: Option<u64> = None,
        /// Points of series that came back. With `restore` only.
        #[optional]
        raws_restored_count: Option<u64> = None,
        /// The execution of the revert's own changes, which can be reverted in turn; null without `restore`, and if nothing
        /// was changed.
        undo_execution_id: Option<ExecutionId> = report.undo_execution,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "revert_job_execution",
        method: Method::Post,
        path: "/api/v1/job-executions/{execution_id}/revert",
        tag: Tag::JobExecutions,
        summary: "Revert an execution",
        description: "Deletes the rows that the execution created, and their series, and the annotations of \
            images that it saved, in one transaction. Updates, deletes and series written to rows that existed \
            before are reported as warnings.\n\n\
            With `restore` all rows and series become what they were before the execution, keys and system \
            columns included. What another execution changed since is a conflict, and so is what the tables do not \
            allow by now. Annotations that were deleted do not come back, those of \
            images in the trash neither.\n\n\
            What was written to a table in the trash stays, with a warning; another revert undoes it once the table \
            is restored.",
        returns: "What was undone, or of a dry run what would be",
        refusals: &[(
            403,
            "The API key lacks the write scope, or the caller may not write a table: one that the execution \
             wrote, or one whose rows refer to a row that it created",
        )],
    }
    .runs(run)
}

async fn run(
    call: Call<Write, OptionalJson<RevertBody>, (), ExecutionPath>,
) -> Result<RevertView, Error> {
    let id = call.path.execution_id.or_not_found(Resource::Execution)?;
    let body = call.body.unwrap_or_default();
    let command = RevertExecution {
        dry_run: body.dry_run,
        restore: body.restore.then_some(body.on_conflict),
    };
    let report = revert_execution(&call.services, &call.actor, id, command).await?;
    let restored = (report.restored_count, report.raws_restored_count);
    let mut view = RevertView::from(report);
    if body.restore {
        view.restored_count = Some(restored.0);
        view.raws_restored_count = Some(restored.1);
    }
    Ok(view)
}
