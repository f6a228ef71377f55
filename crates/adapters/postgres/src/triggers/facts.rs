//! Facts that decide which runs follow from a batch of events, loaded as sets.

use std::collections::{BTreeMap, BTreeSet};

use diesel::{
    prelude::*,
    sql_types::{Array, Integer, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::Execution,
    files::File,
    ids::{ExecutionId, FileId, InstrumentId, JobId, OrganizationId},
    jobs::Job,
    triggers::{
        Candidate, MAX_CHAIN, Occurrence, TriggerEvent,
        event::{Event, EventKind},
    },
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{errors::Fault, pool::Connection},
    executions::rows::ExecutionRow,
    files::rows::FileRow,
    instruments::with_reader,
    jobs::rows::JobRow,
    schema::{file, job, job_execution, job_trigger},
};

/// Facts about a batch of events.
pub(super) struct Facts {
    occurrences: BTreeMap<Uuid, Occurrence>,
    candidates: BTreeMap<OrganizationId, Vec<Candidate>>,
    chains: BTreeMap<Uuid, Vec<JobId>>,
}

impl Facts {
    /// Loads the facts about these events.
    pub(super) async fn load(connection: &mut Connection, events: &[Event]) -> Result<Self, Fault> {
        let files = events.iter().filter_map(|event| event.kind.file());
        let files: Vec<Uuid> = files.map(FileId::as_uuid).collect();
        let executions = events.iter().filter_map(|event| event.kind.execution());
        let executions: Vec<Uuid> = executions.map(ExecutionId::as_uuid).collect();
        let mut occurrences = uploads(connection, &files).await?;
        occurrences.extend(ends(connection, &executions).await?);
        let candidates = candidates(connection, events, &occurrences).await?;
        // Spares the recursive query for organizations without a trigger that could fire.
        let sources = events.iter().filter(|event| {
            candidates
                .get(&event.organization)
                .is_some_and(|candidates| !candidates.is_empty())
        });
        let sources: Vec<Uuid> = sources
            .filter_map(|event| occurrences.get(&subject(event)))
            .filter_map(|occurrence| occurrence.source().map(ExecutionId::as_uuid))
            .collect();
        let chains = chains(connection, &sources).await?;
        Ok(Self {
            occurrences,
            candidates,
            chains,
        })
    }

    /// One of the events with its facts; `None` if its file has been deleted.
    pub(super) fn of<'a>(&'a self, event: &'a Event) -> Option<TriggerEvent<'a>> {
        let occurrence = self.occurrences.get(&subject(event))?;
        let source = occurrence.source();
        let chain = source.and_then(|source| self.chains.get(&source.as_uuid()));
        Some(TriggerEvent {
            event,
            occurrence,
            candidates: self
                .candidates
                .get(&event.organization)
                .map(Vec::as_slice)
                .unwrap_or_default(),
            chain: chain.map(Vec::as_slice).unwrap_or_default(),
        })
    }
}

/// Id of the event's file or execution.
fn subject(event: &Event) -> Uuid {
    match event.kind {
        EventKind::FileUploaded(file) => file.as_uuid(),
        EventKind::JobCompleted(execution) => execution.as_uuid(),
    }
}

async fn uploads(
    connection: &mut Connection,
    ids: &[Uuid],
) -> Result<BTreeMap<Uuid, Occurrence>, Fault> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Of all organizations: the ids are those of events that the
    // platform recorded, not of a request.
    let rows: Vec<FileRow> = file::table
        .filter(file::id.eq_any(ids))
        .select(FileRow::as_select())
        .load(connection)
        .await?;
    let instruments = rows.iter().filter_map(FileRow::instrument).collect();
    let readers = with_reader(connection, instruments).await?;
    let uploads = rows.into_iter().filter_map(|row| {
        let file: File = readable(row.try_into(), "a file triggers no job")?;
        let has_reader = |id: InstrumentId| readers.contains(&id.as_uuid());
        Some((file.id.as_uuid(), Occurrence::upload(&file, has_reader)?))
    });
    Ok(uploads.collect())
}

async fn ends(
    connection: &mut Connection,
    ids: &[Uuid],
) -> Result<BTreeMap<Uuid, Occurrence>, Fault> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows: Vec<ExecutionRow> = job_execution::table
        .inner_join(job::table)
        .filter(job_execution::id.eq_any(ids))
        .select(ExecutionRow::as_select())
        .load(connection)
        .await?;
    let made: Vec<(Option<Uuid>, Option<OffsetDateTime>, Uuid)> = file::table
        .filter(file::job_execution_id.eq_any(ids.iter().copied().map(Some)))
        .filter(file::status.eq("confirmed"))
        .select((file::job_execution_id, file::uploaded_at, file::id))
        .load(connection)
        .await?;
    let mut outputs: BTreeMap<Uuid, Vec<(OffsetDateTime, FileId)>> = BTreeMap::new();
    for (execution, uploaded_at, id) in made {
        if let (Some(execution), Some(uploaded_at)) = (execution, uploaded_at) {
            let outputs = outputs.entry(execution).or_default();
            outputs.push((uploaded_at, FileId::new(id)));
        }
    }
    let ends = rows.into_iter().filter_map(|row| {
        let execution: Execution = readable(row.try_into(), "an execution triggers no job")?;
        let id = execution.id.as_uuid();
        let outputs = outputs.remove(&id).unwrap_or_default();
        Some((id, Occurrence::end(&execution, outputs)))
    });
    Ok(ends.collect())
}

/// Jobs whose triggers may wait for one of the events.
async fn candidates(
    connection: &mut Connection,
    events: &[Event],
    occurrences: &BTreeMap<Uuid, Occurrence>,
) -> Result<BTreeMap<OrganizationId, Vec<Candidate>>, Fault> {
    let (mut uploaded, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match occurrences.get(&subject(event)) {
            Some(Occurrence::File { .. }) => uploaded.insert(event.organization.as_uuid()),
            Some(Occurrence::Ended { job, .. }) => ended.insert(job.as_uuid()),
            None => false,
        };
    }
    // Jobs that wait for another job need no condition on the organization: ids of jobs are unique on the platform.
    let of_files = job_trigger::category
        .eq("file_uploaded")
        .and(job_trigger::organization_id.eq_any(uploaded));
    let of_jobs = job_trigger::source_job_id
        .is_not_null()
        .and(job_trigger::source_job_id.assume_not_null().eq_any(ended));
    let ids: Vec<Uuid> = job_trigger::table
        .filter(of_files.or(of_jobs))
        .select(job_trigger::job_id)
        .load(connection)
        .await?;
    load_candidates(connection, ids).await
}

/// Candidates among these jobs, by organization, in the order of the ids. A job that cannot be read
/// does not run, and does not delay other jobs.
pub(super) async fn load_candidates(
    connection: &mut Connection,
    jobs: Vec<Uuid>,
) -> Result<BTreeMap<OrganizationId, Vec<Candidate>>, Fault> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows: Vec<(Uuid, JobRow)> = job::table
        .left_join(job_trigger::table)
        .filter(job::id.eq_any(jobs))
        // Archived jobs retain their triggers, which must not fire.
        .filter(job::archived.eq(false))
        .select((job::organization_id, JobRow::as_select()))
        .load(connection)
        .await?;
    let mut candidates: BTreeMap<OrganizationId, Vec<Candidate>> = BTreeMap::new();
    for (organization, row) in rows {
        let job: Option<Job> = readable(row.try_into(), "a trigger cannot fire");
        if let Some(candidate) = job.as_ref().and_then(Job::candidate) {
            let organization = OrganizationId::new(organization);
            candidates.entry(organization).or_default().push(candidate);
        }
    }
    Ok(candidates)
}

/// Logs a row that cannot be read.
pub(super) fn readable<T>(row: Result<T, PortError>, consequence: &str) -> Option<T> {
    row.inspect_err(|error| tracing::error!(%error, "{consequence}"))
        .ok()
}

#[derive(QueryableByName)]
struct ChainRow {
    #[diesel(sql_type = SqlUuid)]
    start: Uuid,
    #[diesel(sql_type = SqlUuid)]
    job_id: Uuid,
}

/// For each execution, the jobs of the platform's runs from it back, nearest first.
pub(super) async fn chains(
    connection: &mut Connection,
    executions: &[Uuid],
) -> Result<BTreeMap<Uuid, Vec<JobId>>, Fault> {
    let mut chains: BTreeMap<Uuid, Vec<JobId>> = BTreeMap::new();
    if executions.is_empty() {
        return Ok(chains);
    }
    // A script that runs elsewhere ends the chain: no trigger has started it.
    let rows: Vec<ChainRow> = diesel::sql_query(
        "WITH RECURSIVE chain (start, organization_id, job_id, source_execution_id, length) AS ( \
             SELECT id, organization_id, job_id, source_execution_id, 1 \
             FROM labdata.job_execution WHERE id = ANY ($1) AND origin = 'platform' \
             UNION ALL \
             SELECT chain.start, it.organization_id, it.job_id, it.source_execution_id, \
                 chain.length + 1 \
             FROM chain JOIN labdata.job_execution it \
                 ON it.organization_id = chain.organization_id \
                 AND it.id = chain.source_execution_id AND it.origin = 'platform' \
             WHERE chain.length < $2) \
         SELECT start, job_id FROM chain ORDER BY start, length",
    )
    .bind::<Array<SqlUuid>, _>(executions)
    .bind::<Integer, _>(i32::try_from(MAX_CHAIN).unwrap_or(i32::MAX))
    .load(connection)
    .await?;
    for row in rows {
        let chain = chains.entry(row.start).or_default();
        chain.push(JobId::new(row.job_id));
    }
    Ok(chains)
}
