//! Backfill: the files that it considers, page by page, oldest first.

use std::collections::{BTreeSet, HashSet};

use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    files::File,
    ids::{ExecutionId, FileId, InstrumentId, OrganizationId},
    refusal::Resource,
    triggers::{BackfillFiles, Occurrence, StoredUpload},
    work::NewRun,
};
use labdata_ports::{
    PortError,
    triggers::{BackfillRequest, DecideBackfill},
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::facts::{chains, readable};
use crate::{
    database::{errors::Fault, pool::Connection},
    executions::rows::queue_all,
    files::rows::FileRow,
    instruments::with_reader,
    schema::{file, job},
};

/// Number of files that one query reads.
const PAGE: i64 = 1_000;

/// Query for the status of a job's last run for the file of the row; the job follows.
const LAST_RUN: &str = "(SELECT run.status FROM labdata.job_execution run \
    WHERE run.organization_id = file.organization_id AND run.trigger_file_id = file.id AND run.job_id = ";

/// End of [`LAST_RUN`].
const LAST_FIRST: &str = " ORDER BY run.created_at DESC, run.id DESC LIMIT 1)";

/// Condition: the event of the file's upload waits in the outbox.
const IS_PENDING: &str = "EXISTS (SELECT FROM labdata.event \
    WHERE event.organization_id = file.organization_id AND event.file_id = file.id)";

/// A file, the status of the job's last run for it, and whether the event of its upload waits.
type UploadRow = (FileRow, Option<String>, bool);

/// Decides about the files of the request and queues the runs that follow.
pub(super) async fn backfill(
    connection: &mut Connection,
    organization: OrganizationId,
    request: &BackfillRequest,
    decide: DecideBackfill<'_>,
) -> Result<Vec<NewRun>, Fault> {
    // Racing backfills of a job queue up here, so that the next one sees the runs of this one.
    // Executions refer to the job under a weaker lock and are not held up.
    job::table
        .filter(job::organization_id.eq(organization.as_uuid()))
        .filter(job::id.eq(request.job.as_uuid()))
        .select(job::id)
        .for_no_key_update()
        .first::<Uuid>(connection)
        .await
        .optional()?
        .ok_or(PortError::NotFound(Resource::Job))?;
    if let BackfillFiles::Named(ids) = &request.files {
        require_confirmed(connection, organization, ids).await?;
    }
    let (mut runs, mut after) = (Vec::new(), None);
    while runs.len() < request.limit {
        let page = uploads(connection, organization, request, after).await?;
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        let stored = with_chains(connection, page).await?;
        runs.extend(stored.iter().filter_map(decide));
    }
    runs.truncate(request.limit);
    if !request.is_dry_run {
        queue_all(connection, organization, &runs).await?;
    }
    Ok(runs)
}

async fn require_confirmed(
    connection: &mut Connection,
    organization: OrganizationId,
    ids: &BTreeSet<FileId>,
) -> Result<(), Fault> {
    let uuids: Vec<Uuid> = ids.iter().copied().map(FileId::as_uuid).collect();
    let found: i64 = file::table
        .filter(file::organization_id.eq(organization.as_uuid()))
        .filter(file::uploaded_at.is_not_null())
        .filter(file::id.eq_any(uuids))
        .count()
        .get_result(connection)
        .await?;
    if usize::try_from(found) == Ok(ids.len()) {
        Ok(())
    } else {
        Err(PortError::NotFound(Resource::File).into())
    }
}

/// Position of a file: time of confirmation and id.
type Position = (OffsetDateTime, Uuid);

/// The next confirmed files of the request. Rows that cannot be read are left out.
async fn uploads(
    connection: &mut Connection,
    organization: OrganizationId,
    request: &BackfillRequest,
    after: Option<Position>,
) -> Result<Vec<(Position, StoredUpload)>, Fault> {
    let last_run = sql::<Nullable<Text>>(LAST_RUN)
        .bind::<SqlUuid, _>(request.job.as_uuid())
        .sql(LAST_FIRST);
    let mut query = file::table
        .filter(file::organization_id.eq(organization.as_uuid()))
        .filter(file::uploaded_at.is_not_null())
        .select((FileRow::as_select(), last_run, sql::<Bool>(IS_PENDING)))
        .order((file::uploaded_at.asc(), file::id.asc()))
        .limit(PAGE)
        .into_boxed();
    match &request.files {
        BackfillFiles::Named(ids) => {
            let ids: Vec<Uuid> = ids.iter().copied().map(FileId::as_uuid).collect();
            query = query.filter(file::id.eq_any(ids));
        }
        BackfillFiles::Triggered {
            instrument,
            uploaded_from,
            uploaded_to,
        } => {
            if let Some(instrument) = instrument.map(InstrumentId::as_uuid) {
                query = query.filter(file::instrument_id.eq(instrument));
            }
            if let Some(from) = *uploaded_from {
                query = query.filter(file::uploaded_at.ge(from));
            }
            if let Some(to) = *uploaded_to {
                query = query.filter(file::uploaded_at.lt(to));
            }
        }
    }
    if let Some((at, id)) = after {
        // A comparison of rows bounds the range of the index.
        let later = sql::<Bool>("(file.uploaded_at, file.id) > (")
            .bind::<Timestamptz, _>(at)
            .sql(", ")
            .bind::<SqlUuid, _>(id)
            .sql(")");
        query = query.filter(later);
    }
    let rows: Vec<UploadRow> = query.load(connection).await?;
    let instruments = rows.iter().filter_map(|(row, ..)| row.instrument());
    let readers = with_reader(connection, instruments.collect()).await?;
    let uploads = rows.into_iter().filter_map(|row| stored(row, &readers));
    Ok(uploads.collect())
}

fn stored(
    (row, last_run, is_pending): UploadRow,
    readers: &HashSet<Uuid>,
) -> Option<(Position, StoredUpload)> {
    let file: File = readable(row.try_into(), "a backfill leaves out a file")?;
    let position = (file.state.uploaded_at()?, file.id.as_uuid());
    let stored = StoredUpload {
        id: file.id,
        upload: Occurrence::upload(&file, |id| readers.contains(&id.as_uuid()))?,
        chain: Vec::new(),
        last_run,
        is_pending,
    };
    Some((position, stored))
}

/// Adds the chains of runs from which files followed.
async fn with_chains(
    connection: &mut Connection,
    page: Vec<(Position, StoredUpload)>,
) -> Result<Vec<StoredUpload>, Fault> {
    let sources: Vec<Uuid> = page
        .iter()
        .filter_map(|(_, stored)| stored.upload.source().map(ExecutionId::as_uuid))
        .collect();
    let chains = chains(connection, &sources).await?;
    let with_chain = |(_, mut stored): (Position, StoredUpload)| {
        let source = stored.upload.source().map(ExecutionId::as_uuid);
        stored.chain = source
            .and_then(|source| chains.get(&source).cloned())
            .unwrap_or_default();
        stored
    };
    Ok(page.into_iter().map(with_chain).collect())
}
