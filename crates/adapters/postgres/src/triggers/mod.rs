//! Triggers that fire: events and ticks become runs in one transaction.

pub(crate) mod events;
pub(crate) mod rows;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{Integer, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    files::{FilePath, SourceType, size_kilobytes},
    ids::{ExecutionId, FileId, InstrumentId, JobId, OrganizationId},
    triggers::{
        Candidate, FileFacts, Firing, MAX_CHAIN, Occurrence, Response, Trigger,
        event::{Event, EventKind},
    },
};
use labdata_ports::{
    IdSource, PortError,
    runs::{NewRun, Wakeups},
    triggers::{Fired, TriggerStore},
};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, end, retried},
        listen::Channel,
        pool::{Connection, Database},
        transaction,
    },
    runs::{Heard, enqueue},
    schema::{file, job, job_execution, job_trigger},
    triggers::rows::TriggerRow,
};

/// Triggers that fire, in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgTriggerStore {
    database: Database,
}

impl PgTriggerStore {
    /// The triggers of that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn act_once(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, Fault> {
        let mut connection = self.database.connection().await?;
        transaction::begin(&mut connection).await?;
        let outcome = act_on_events(&mut connection, ids, now, limit).await;
        end(&mut connection, outcome).await
    }

    async fn fire_once(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, Fault> {
        let mut connection = self.database.connection().await?;
        transaction::begin(&mut connection).await?;
        let outcome = fire_schedules(&mut connection, ids, now, limit).await;
        end(&mut connection, outcome).await
    }
}

/// A job that may run, with its trigger.
#[derive(Queryable, Selectable)]
#[diesel(table_name = job_trigger)]
struct CandidateRow {
    organization_id: Uuid,
    job_id: Uuid,
    #[diesel(select_expression = job::version_number)]
    version_number: Option<i64>,
    #[diesel(select_expression = job::parameter_definitions)]
    parameter_definitions: Value,
    #[diesel(embed)]
    trigger: TriggerRow,
}

impl TryFrom<CandidateRow> for (OrganizationId, Candidate) {
    type Error = PortError;

    fn try_from(row: CandidateRow) -> Result<Self, PortError> {
        let corrupt = |column| corrupt("job", column, row.job_id);
        let version = row.version_number.and_then(|it| u32::try_from(it).ok());
        let candidate = Candidate {
            job: JobId::new(row.job_id),
            script_version: version.ok_or_else(|| corrupt("version_number"))?,
            parameters: serde_json::from_value(row.parameter_definitions)
                .map_err(|_| corrupt("parameter_definitions"))?,
            trigger: Trigger::try_from(row.trigger)?,
        };
        Ok((OrganizationId::new(row.organization_id), candidate))
    }
}

/// The candidates among these rows, by organization. What cannot be read runs nothing, and holds
/// up nothing else.
fn candidates(rows: Vec<CandidateRow>) -> BTreeMap<OrganizationId, Vec<Candidate>> {
    let mut candidates: BTreeMap<OrganizationId, Vec<Candidate>> = BTreeMap::new();
    for row in rows {
        match row.try_into() {
            Ok((organization, candidate)) => {
                candidates.entry(organization).or_default().push(candidate);
            }
            Err(error) => {
                let error: PortError = error;
                tracing::error!(%error, "a trigger cannot fire");
            }
        }
    }
    candidates
}

/// A file as conditions look at it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = file)]
struct FileRow {
    id: Uuid,
    organization_id: Uuid,
    original_path: String,
    source_type: String,
    size_bytes: Option<i64>,
    instrument_id: Option<Uuid>,
    job_execution_id: Option<Uuid>,
}

impl FileRow {
    fn occurrence(self) -> Result<Occurrence, PortError> {
        let corrupt = |column| corrupt("file", column, self.id);
        let bytes = self.size_bytes.and_then(|size| u64::try_from(size).ok());
        Ok(Occurrence::File {
            id: FileId::new(self.id),
            facts: FileFacts {
                path: FilePath::parse(&self.original_path).map_err(|_| corrupt("original_path"))?,
                source: SourceType::from_name(&self.source_type)
                    .ok_or_else(|| corrupt("source_type"))?,
                size_kilobytes: size_kilobytes(bytes.ok_or_else(|| corrupt("size_bytes"))?),
            },
            instrument: self.instrument_id.map(InstrumentId::new),
            made_by: self.job_execution_id.map(ExecutionId::new),
        })
    }
}

/// What happened, whose it is, and from which execution it followed.
struct Happened {
    organization: OrganizationId,
    occurrence: Occurrence,
    source: Option<ExecutionId>,
}

async fn act_on_events(
    connection: &mut Connection,
    ids: &dyn IdSource,
    now: OffsetDateTime,
    limit: u32,
) -> Result<Fired, Fault> {
    let events = events::take(connection, limit).await?;
    let mut fired = Fired::default();
    if events.is_empty() {
        return Ok(fired);
    }
    fired.handled = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let happened = what_happened(connection, &events).await?;
    let concerned = concerned(connection, &happened).await?;
    for happened in happened {
        let Some(candidates) = concerned.get(&happened.organization) else {
            continue;
        };
        // Asked for once, and only where anybody might answer.
        let mut chain: Option<Vec<JobId>> = None;
        for candidate in candidates {
            if candidate.respond(&happened.occurrence, &[]) == Response::Runs(Vec::new()) {
                continue;
            }
            let chain = match &mut chain {
                Some(chain) => chain,
                none => none.insert(load_chain(connection, &happened).await?),
            };
            match candidate.respond(&happened.occurrence, chain) {
                Response::Runs(firings) => {
                    for firing in firings {
                        queue(connection, happened.organization, firing, ids, now).await?;
                        fired.runs = fired.runs.saturating_add(1);
                    }
                }
                Response::Loop => tracing::warn!(
                    job = %candidate.job,
                    trigger = %candidate.trigger.id,
                    "a trigger does not fire: the job would follow from itself, or the chain is too long"
                ),
            }
        }
    }
    Ok(fired)
}

/// What the events tell; nothing of what is gone meanwhile.
async fn what_happened(
    connection: &mut Connection,
    events: &[Event],
) -> Result<Vec<Happened>, Fault> {
    let files = events.iter().filter_map(|event| event.kind.file());
    let executions = events.iter().filter_map(|event| event.kind.execution());
    let mut files = load_files(connection, files.map(FileId::as_uuid).collect()).await?;
    let executions = executions.map(ExecutionId::as_uuid).collect();
    let mut ended = load_ended(connection, executions).await?;
    let happened = events.iter().filter_map(|event| {
        let (organization, occurrence) = match event.kind {
            EventKind::FileUploaded(id) => files.remove(&id.as_uuid())?,
            EventKind::JobCompleted(id) => ended.remove(&id.as_uuid())?,
        };
        let source = match &occurrence {
            Occurrence::File { made_by, .. } => *made_by,
            Occurrence::Ended { id, .. } => Some(*id),
            Occurrence::Tick => None,
        };
        (organization == event.organization).then_some(Happened {
            organization,
            occurrence,
            source,
        })
    });
    Ok(happened.collect())
}

type Occurrences = BTreeMap<Uuid, (OrganizationId, Occurrence)>;

async fn load_files(connection: &mut Connection, ids: Vec<Uuid>) -> Result<Occurrences, Fault> {
    let mut files = Occurrences::new();
    if ids.is_empty() {
        return Ok(files);
    }
    let rows: Vec<FileRow> = file::table
        .filter(file::id.eq_any(ids))
        .filter(file::status.eq("confirmed"))
        .select(FileRow::as_select())
        .load(connection)
        .await?;
    for row in rows {
        let (id, organization) = (row.id, OrganizationId::new(row.organization_id));
        match row.occurrence() {
            Ok(occurrence) => {
                files.insert(id, (organization, occurrence));
            }
            Err(error) => tracing::error!(%error, "a file triggers nothing"),
        }
    }
    Ok(files)
}

async fn load_ended(connection: &mut Connection, ids: Vec<Uuid>) -> Result<Occurrences, Fault> {
    if ids.is_empty() {
        return Ok(Occurrences::new());
    }
    let executions: Vec<(Uuid, Uuid, Uuid, String)> = job_execution::table
        .filter(job_execution::id.eq_any(&ids))
        .select((
            job_execution::id,
            job_execution::organization_id,
            job_execution::job_id,
            job_execution::status,
        ))
        .load(connection)
        .await?;
    let made: Vec<(Option<Uuid>, Uuid)> = file::table
        .filter(file::organization_id.eq_any(executions.iter().map(|(_, it, _, _)| *it)))
        .filter(file::job_execution_id.eq_any(ids.iter().copied().map(Some)))
        .filter(file::status.eq("confirmed"))
        .order((file::uploaded_at.asc(), file::id.asc()))
        .select((file::job_execution_id, file::id))
        .load(connection)
        .await?;
    let mut outputs: BTreeMap<Uuid, Vec<FileId>> = BTreeMap::new();
    for (execution, id) in made {
        if let Some(execution) = execution {
            outputs.entry(execution).or_default().push(FileId::new(id));
        }
    }
    let ended = executions
        .into_iter()
        .map(|(id, organization, job, status)| {
            let occurrence = Occurrence::Ended {
                id: ExecutionId::new(id),
                job: JobId::new(job),
                status,
                outputs: outputs.remove(&id).unwrap_or_default(),
            };
            (id, (OrganizationId::new(organization), occurrence))
        });
    Ok(ended.collect())
}

/// The active jobs whose triggers may wait for any of this.
async fn concerned(
    connection: &mut Connection,
    happened: &[Happened],
) -> Result<BTreeMap<OrganizationId, Vec<Candidate>>, Fault> {
    let (mut uploads, mut sources) = (BTreeSet::new(), BTreeSet::new());
    let mut organizations = BTreeSet::new();
    for happened in happened {
        organizations.insert(happened.organization.as_uuid());
        match &happened.occurrence {
            Occurrence::File { .. } => {
                uploads.insert(happened.organization.as_uuid());
            }
            Occurrence::Ended { job, .. } => {
                sources.insert(job.as_uuid());
            }
            Occurrence::Tick => {}
        }
    }
    let uploads: Vec<Uuid> = uploads.into_iter().collect();
    let sources: Vec<Option<Uuid>> = sources.into_iter().map(Some).collect();
    let organizations: Vec<Uuid> = organizations.into_iter().collect();
    let of_files = job_trigger::category
        .eq("file_uploaded")
        .and(job_trigger::organization_id.eq_any(uploads));
    let of_jobs = job_trigger::source_job_id.is_not_null().and(
        job_trigger::source_job_id
            .assume_not_null()
            .eq_any(sources.into_iter().flatten().collect::<Vec<Uuid>>()),
    );
    let rows: Vec<CandidateRow> = job_trigger::table
        .inner_join(job::table)
        .filter(job_trigger::organization_id.eq_any(organizations))
        .filter(of_files.or(of_jobs))
        .filter(job::archived.eq(false))
        .filter(job::version_number.is_not_null())
        .order(job_trigger::id)
        .select(CandidateRow::as_select())
        .load(connection)
        .await?;
    Ok(candidates(rows))
}

#[derive(QueryableByName)]
struct ChainRow {
    #[diesel(sql_type = SqlUuid)]
    job_id: Uuid,
}

/// The jobs of the platform's runs from which it followed, the nearest first.
async fn load_chain(connection: &mut Connection, happened: &Happened) -> Result<Vec<JobId>, Fault> {
    let Some(source) = happened.source else {
        return Ok(Vec::new());
    };
    let chain: Vec<ChainRow> = diesel::sql_query(
        "WITH RECURSIVE chain (job_id, source_execution_id, length) AS ( \
             SELECT job_id, source_execution_id, 1 FROM labdata.job_execution \
             WHERE organization_id = $1 AND id = $2 AND origin = 'platform' \
             UNION ALL \
             SELECT it.job_id, it.source_execution_id, chain.length + 1 \
             FROM chain JOIN labdata.job_execution it ON it.organization_id = $1 \
                 AND it.id = chain.source_execution_id AND it.origin = 'platform' \
             WHERE chain.length < $3) \
         SELECT job_id FROM chain ORDER BY length",
    )
    .bind::<SqlUuid, _>(happened.organization.as_uuid())
    .bind::<SqlUuid, _>(source.as_uuid())
    .bind::<Integer, _>(i32::try_from(MAX_CHAIN).unwrap_or(i32::MAX))
    .load(connection)
    .await?;
    Ok(chain
        .into_iter()
        .map(|row| JobId::new(row.job_id))
        .collect())
}

async fn queue(
    connection: &mut Connection,
    organization: OrganizationId,
    firing: Firing,
    ids: &dyn IdSource,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let run = NewRun {
        id: ExecutionId::new(ids.next_id()),
        job: firing.job,
        script_version: firing.script_version,
        trigger_file: firing.file,
        parameters: firing.parameters,
        source: firing.source,
        started_by: firing.started_by,
        api_key: None,
        queued_at: now,
    };
    enqueue(connection, organization, &run).await
}

async fn fire_schedules(
    connection: &mut Connection,
    ids: &dyn IdSource,
    now: OffsetDateTime,
    limit: u32,
) -> Result<Fired, Fault> {
    let active = job::table
        .filter(job::archived.eq(false))
        .filter(job::version_number.is_not_null())
        .select(job::id);
    // What somebody holds is being changed, or fired.
    let due: Vec<Uuid> = job_trigger::table
        .filter(job_trigger::next_fire_at.le(now))
        .filter(job_trigger::job_id.eq_any(active))
        .order(job_trigger::next_fire_at)
        .limit(i64::from(limit))
        .for_update()
        .skip_locked()
        .select(job_trigger::id)
        .load(connection)
        .await?;
    if due.is_empty() {
        return Ok(Fired::default());
    }
    let rows: Vec<CandidateRow> = job_trigger::table
        .inner_join(job::table)
        .filter(job_trigger::id.eq_any(&due))
        .filter(job::archived.eq(false))
        .filter(job::version_number.is_not_null())
        .select(CandidateRow::as_select())
        .load(connection)
        .await?;
    let mut fired = Fired::default();
    for (organization, candidates) in candidates(rows) {
        for candidate in candidates {
            fired.handled += 1;
            let own = job_trigger::table.find(candidate.trigger.id.as_uuid());
            diesel::update(own)
                .set(job_trigger::next_fire_at.eq(candidate.trigger.next_after(now)))
                .execute(connection)
                .await?;
            if let Response::Runs(firings) = candidate.respond(&Occurrence::Tick, &[]) {
                for firing in firings {
                    queue(connection, organization, firing, ids, now).await?;
                    fired.runs += 1;
                }
            }
        }
    }
    Ok(fired)
}

#[async_trait]
impl TriggerStore for PgTriggerStore {
    async fn act_on_events(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, PortError> {
        Ok(retried!(self.act_once(ids, now, limit))?)
    }

    async fn fire_schedules(
        &self,
        ids: &dyn IdSource,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Fired, PortError> {
        Ok(retried!(self.fire_once(ids, now, limit))?)
    }

    fn subscribe(&self) -> Box<dyn Wakeups> {
        Box::new(Heard(self.database.listen(Channel::Event)))
    }
}
