//! `POST /api/v1/jobs/{job_id}/backfill`

use labdata_application::{
    Error,
    work::backfill::{BackfillJob, Backfilled, backfill_job},
};
use labdata_domain::{
    ids::{ExecutionId, FileId, InstrumentId},
    refusal::Resource,
    triggers::{BackfillOnly, LISTED_BACKFILL_FILES, MAX_BACKFILL_RUNS},
};
use labdata_request_body::{
    ProblemKind,
    fields::{optional, or},
    output,
    readers::{MaybeId, boolean, choice, datetime, id, list, text},
    shape,
};
use serde_json::json;
use time::OffsetDateTime;

use crate::{About, Call, Method, Operation, OptionalJson, OrNotFound, Tag, Write, jobs::JobPath};

shape! {
    /// Files to run a job for. The body may be empty or null.
    #[derive(Clone, Debug, Default)]
    pub struct BackfillBody {
        /// These files, without regard to the conditions of the job's trigger. By default, those that its trigger of
        /// the category `file_uploaded` would have taken.
        file_ids: Option<Vec<String>> = optional(list(text(..)).of(1..=MAX_BACKFILL_RUNS)),
        /// Only files of this instrument.
        instrument_id: Option<MaybeId<InstrumentId>> = optional(id()),
        /// Only files uploaded at this time or later.
        uploaded_from: Option<OffsetDateTime> = optional(datetime()),
        /// Only files uploaded before this time.
        uploaded_to: Option<OffsetDateTime> = optional(datetime()),
        /// `never_run`: only files for which the job has never been queued; `failed`: only those whose last
        /// run of the job failed.
        only: BackfillOnly = or("all", choice(BackfillOnly::ALL)),
        /// Queues nothing.
        dry_run: bool = or(false, boolean()),
    }
    example json!({"uploaded_from": "2026-03-01T00:00:00Z", "only": "never_run", "dry_run": true});

    rules |at| {
        let is_filtered = [
            matches!(instrument_id, Some(Some(_))),
            matches!(uploaded_from, Some(Some(_))),
            matches!(uploaded_to, Some(Some(_))),
        ];
        if matches!(file_ids, Some(Some(_))) && is_filtered.contains(&true) {
            at.field("file_ids").report(ProblemKind::value_error(
                "not together with instrument_id, uploaded_from or uploaded_to",
            ));
        }
    }
}

output! {
    /// Runs that a backfill queued, or would queue.
    #[derive(Debug)]
    pub struct BackfillView as "Backfill" from backfilled: Backfilled {
        /// Number of files, each of which is one run.
        count: usize = backfilled.files.len(),
        /// Ids of the first 100 files, oldest first.
        files: Vec<FileId> =
            backfilled.files.into_iter().take(LISTED_BACKFILL_FILES).collect(),
        /// Ids of all executions, in the order of the files; empty after a dry run.
        execution_ids: Vec<ExecutionId> = backfilled.executions,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "backfill_job",
        method: Method::Post,
        path: "/api/v1/jobs/{job_id}/backfill",
        tag: Tag::Jobs,
        summary: "Runs a job for files that were uploaded earlier",
        description: "Queues one run of the current version per file that the job's file trigger would have \
            taken, or per named file, oldest first, at most 10,000. The runs are the caller's.",
        returns: "The runs, queued",
        refusals: &[],
    }
    .runs(run)
    .creating()
}

async fn run(
    call: Call<Write, OptionalJson<BackfillBody>, (), JobPath>,
) -> Result<BackfillView, Error> {
    let id = call.path.job_id.or_not_found(Resource::Job)?;
    let body = call.body.unwrap_or_default();
    let instrument = body.instrument_id;
    let instrument = instrument.map(|id| id.or_not_found(Resource::Instrument));
    let command = BackfillJob {
        files: body.file_ids,
        instrument: instrument.transpose()?,
        uploaded_from: body.uploaded_from,
        uploaded_to: body.uploaded_to,
        only: body.only,
        is_dry_run: body.dry_run,
    };
    Ok(backfill_job(&call.services, &call.actor, id, command)
        .await?
        .into())
}
