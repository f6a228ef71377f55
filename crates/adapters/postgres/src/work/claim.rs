//! Claims of waiting work.

use std::collections::BTreeMap;

use diesel::{
    prelude::*,
    sql_types::{BigInt, Double, Text, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    events::LoggedEventKind,
    executions::{Execution, ExecutionState},
    ids::{OrganizationId, TriggerId, UserId},
    models::{ModelVersion, VersionState},
    work::{FreeSlots, WorkKind},
};
use labdata_ports::{
    PortError,
    work::{ClaimTerms, ClaimedRun, ClaimedTraining, ClaimedWork, Task, WorkClaim},
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::rows;
use crate::{
    database::{
        errors::{Fault, corrupt},
        listen::{Channel, notify_of},
        pool::Connection,
    },
    events::record::record,
    executions::rows::ExecutionRow,
    models::{rows::DatasetRow, version_rows::load_versions},
    people::rows::read_scopes,
    schema::{dataset, job, job_execution, ml_model_version},
};

/// Number of an organization's oldest work that other claims may be taking at this moment: this much
/// more is examined than is wanted.
const CLAIMED_BY_OTHERS: i64 = 64;

/// Claims waiting work of one kind, in turns: an organization's next work comes after the next of those
/// that have less running. The organizations with waiting work are found by jumping through the index from
/// one to the next, so the amount of their work does not matter. Of the rows that were locked, those over
/// the slots of organizations with running work stay waiting. The array makes the planner choose the rows
/// once.
///
/// Parameters: kind, seconds of the lease, free slots, rows to examine per organization, slots of
/// organizations with running work.
const CLAIM: &str = "
WITH RECURSIVE waiting AS (
    (SELECT organization_id FROM labdata.work
     WHERE kind = $1 AND state = 'queued' ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT next.organization_id FROM waiting CROSS JOIN LATERAL (
        SELECT w.organization_id FROM labdata.work w
        WHERE w.kind = $1 AND w.state = 'queued' AND w.organization_id > waiting.organization_id
        ORDER BY w.organization_id LIMIT 1) next),
turns AS (
    SELECT oldest.id, oldest.queued_at, held.running + row_number() OVER (
        PARTITION BY waiting.organization_id ORDER BY oldest.queued_at, oldest.id) AS turn
    FROM waiting
    CROSS JOIN LATERAL (
        SELECT count(*) AS running FROM labdata.work w
        WHERE w.kind = $1 AND w.state = 'running' AND w.organization_id = waiting.organization_id) held
    CROSS JOIN LATERAL (
        SELECT w.id, w.queued_at FROM labdata.work w
        WHERE w.kind = $1 AND w.state = 'queued' AND w.organization_id = waiting.organization_id
        ORDER BY w.queued_at, w.id LIMIT $4) oldest),
locked AS MATERIALIZED (
    SELECT w.id, turns.turn, turns.queued_at
    FROM labdata.work w JOIN turns ON turns.id = w.id
    WHERE w.state = 'queued' ORDER BY turns.turn, turns.queued_at, w.id
    LIMIT $3 FOR UPDATE OF w SKIP LOCKED),
chosen AS (
    SELECT id, turn, row_number() OVER (ORDER BY turn, queued_at, id) AS slot FROM locked),
claimed AS (
    UPDATE labdata.work w
    SET state = 'running', attempt = w.attempt + 1,
        lease_expires_at = clock_timestamp() + make_interval(secs => $2)
    WHERE w.id = ANY (ARRAY(
        SELECT chosen.id FROM chosen WHERE chosen.turn = 1 OR chosen.slot <= $5))
    RETURNING w.id, w.organization_id, w.attempt, w.queued_at),
logged AS (
    INSERT INTO labdata.work_log (work_id, organization_id, attempt)
    SELECT id, organization_id, attempt FROM claimed
    ON CONFLICT (organization_id, work_id) DO UPDATE SET attempt = excluded.attempt)
SELECT id, organization_id, attempt FROM claimed ORDER BY queued_at, id";

#[derive(QueryableByName)]
struct ClaimRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = BigInt)]
    attempt: i64,
}

/// Claims work and starts its records.
pub(super) async fn claim(
    connection: &mut Connection,
    kind: WorkKind,
    slots: FreeSlots,
    terms: ClaimTerms,
) -> Result<Vec<ClaimedWork>, Fault> {
    // `locked` asks for the state once more: PostgreSQL checks that on the newest version of the row, so it skips
    // work that another claim took after this statement began.
    let taken: Vec<ClaimRow> = diesel::sql_query(CLAIM)
        .bind::<Text, _>(kind.as_str())
        .bind::<Double, _>(terms.lease.as_seconds_f64())
        .bind::<BigInt, _>(i64::from(slots.free))
        // More candidates than slots: workers that claim at the same time have locked some, which SKIP LOCKED passes
        // over.
        .bind::<BigInt, _>(i64::from(slots.free) + CLAIMED_BY_OTHERS)
        .bind::<BigInt, _>(i64::from(slots.for_running()))
        .load(connection)
        .await?;
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    let mut claims = Vec::new();
    for row in taken {
        let work = kind.work(row.id);
        claims.push(WorkClaim {
            organization: OrganizationId::new(row.organization_id),
            work,
            attempt: rows::attempt(row.attempt, work)?,
        });
    }
    let ids: Vec<Uuid> = claims.iter().map(|claim| claim.work.as_uuid()).collect();
    let mut tasks = match kind {
        WorkKind::Run => start_runs(connection, &claims, &ids, terms).await?,
        WorkKind::Training => start_trainings(connection, &ids, terms.now).await?,
    };
    // Work whose record cannot be read has no task. It stays with its lease, and must not block the rest.
    let claimed = claims.into_iter().filter_map(|claim| {
        let task = tasks.remove(&claim.work.as_uuid())?;
        Some(ClaimedWork { claim, task })
    });
    Ok(claimed.collect())
}

/// User, key or trigger that started a run.
#[derive(Queryable, Selectable)]
#[diesel(table_name = job_execution)]
struct StarterRow {
    started_by: Uuid,
    trigger_id: Option<Uuid>,
    run_scopes: Option<Vec<String>>,
}

impl StarterRow {
    fn run(self, row: ExecutionRow) -> Result<ClaimedRun, PortError> {
        let execution = Execution::try_from(row)?;
        let scopes = self.run_scopes.as_deref().and_then(read_scopes);
        Ok(ClaimedRun {
            scopes: scopes.ok_or_else(|| corrupt("job_execution", "run_scopes", execution.id))?,
            execution,
            started_by: UserId::new(self.started_by),
            trigger: self.trigger_id.map(TriggerId::new),
        })
    }
}

/// Starts the executions of claimed runs.
async fn start_runs(
    connection: &mut Connection,
    claims: &[WorkClaim],
    ids: &[Uuid],
    terms: ClaimTerms,
) -> Result<BTreeMap<Uuid, Task>, Fault> {
    let running = ExecutionState::Running {
        deadline: Some(terms.now + terms.timeout),
    };
    // In the transaction of the claim: an execution is running exactly while its work is held.
    diesel::update(job_execution::table.filter(job_execution::id.eq_any(ids)))
        .set((
            job_execution::status.eq(running.as_str()),
            job_execution::deadline.eq(running.deadline()),
            job_execution::started_at.eq(Some(terms.now)),
        ))
        .execute(connection)
        .await?;
    let rows: Vec<(StarterRow, ExecutionRow)> = job_execution::table
        .inner_join(job::table)
        .filter(job_execution::id.eq_any(ids))
        .select((StarterRow::as_select(), ExecutionRow::as_select()))
        .load(connection)
        .await?;
    // Grouped, because events are recorded per organization.
    let mut started: BTreeMap<OrganizationId, Vec<LoggedEventKind>> = BTreeMap::new();
    for claim in claims {
        if let Some(id) = claim.work.execution() {
            let kinds = started.entry(claim.organization).or_default();
            kinds.push(LoggedEventKind::ExecutionStarted(id));
        }
    }
    for (organization, kinds) in started {
        record(connection, organization, terms.now, &kinds).await?;
    }
    let mut tasks = BTreeMap::new();
    for (starter, row) in rows {
        match starter.run(row) {
            Ok(run) => {
                let id = run.execution.id.as_uuid();
                tasks.insert(id, Task::Run(Box::new(run)));
            }
            Err(error) => tracing::error!(%error, "a claimed run cannot be read"),
        }
    }
    Ok(tasks)
}

/// Starts the versions of claimed trainings.
async fn start_trainings(
    connection: &mut Connection,
    ids: &[Uuid],
    now: OffsetDateTime,
) -> Result<BTreeMap<Uuid, Task>, Fault> {
    let training = VersionState::Training { started_at: now };
    diesel::update(ml_model_version::table.filter(ml_model_version::id.eq_any(ids)))
        .set((
            ml_model_version::status.eq(training.as_str()),
            ml_model_version::started_at.eq(training.started_at()),
        ))
        .execute(connection)
        .await?;
    let mut tasks = BTreeMap::new();
    for row in load_versions(connection, ids).await? {
        let training = match ModelVersion::try_from(row) {
            Ok(version) => with_dataset(connection, version).await?,
            Err(error) => Err(error),
        };
        match training {
            Ok(training) => {
                let id = training.version.version.as_uuid();
                tasks.insert(id, Task::Training(Box::new(training)));
            }
            Err(error) => tracing::error!(%error, "a claimed training cannot be read"),
        }
    }
    // The event log has no start of a training: streams of its progress wait for this channel.
    notify_of(connection, Channel::WorkChanged, ids).await?;
    Ok(tasks)
}

/// Reads the dataset of a claimed training.
async fn with_dataset(
    connection: &mut Connection,
    version: ModelVersion,
) -> Result<Result<ClaimedTraining, PortError>, Fault> {
    // A query each: a claim takes as many trainings as the worker has free slots, which are few.
    let row: DatasetRow = dataset::table
        .find(version.dataset.as_uuid())
        .select(DatasetRow::as_select())
        .first(connection)
        .await?;
    Ok(row
        .try_into()
        .map(|dataset| ClaimedTraining { version, dataset }))
}
