//! The queue of runs on the platform.

pub(crate) mod leases;
pub(crate) mod logs;
pub(crate) mod nonces;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::{CancelError, Execution},
    ids::{ExecutionId, OrganizationId, UserId},
    keys::{ApiKey, run_nonce::RunNonce},
    runs::{FreeSlots, LostWorker, NewRun, RunEnd, after_lost_worker},
};
use labdata_ports::{
    PortError,
    executions::OverdueExecution,
    runs::{
        CancelExecutionError, ClaimedRun, ExpiredRuns, NonceUse, RunClaim, RunNews, RunQueue,
        Wakeups,
    },
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, retried, transacted},
        listen::{Channel, notify},
        pool::{Connection, Database},
    },
    executions::{
        ends::store_ends,
        rows::{ExecutionRow, insert, load, lock},
    },
    keys::rows as key_rows,
    runs::leases::LeaseLock,
    schema::{job_execution, run_lease},
};

/// The queue of runs in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgRunQueue {
    database: Database,
}

impl PgRunQueue {
    /// The queue over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Queues a run in the transaction of its cause; workers are notified when it commits.
pub(crate) async fn enqueue(
    connection: &mut Connection,
    organization: OrganizationId,
    run: &NewRun,
) -> Result<(), Fault> {
    // The name of a job is not stored with its executions.
    let execution = Execution::queue(run, String::new());
    insert(
        connection,
        organization,
        &execution,
        run.started_by,
        run.api_key,
    )
    .await?;
    notify(connection, Channel::RunQueued).await
}

/// How many of an organization's oldest runs other claims may be taking at this moment: so many more
/// are looked at than are wanted.
const CLAIMED_BY_OTHERS: i64 = 64;

/// Takes runs in turns: an organization's next run comes after the next ones of those that have
/// fewer running. Which organizations wait is found by jumping through the index from one to the
/// next, so that it does not matter how many runs each of them has. Of the rows that were locked,
/// those over the slots of organizations with a running run stay queued, where there are several
/// organizations. The array makes the planner choose the rows once.
const CLAIM: &str = "
    WITH RECURSIVE waiting AS (
        (SELECT organization_id FROM labdata.job_execution WHERE status = 'queued'
         ORDER BY organization_id LIMIT 1)
        UNION ALL
        SELECT next.organization_id FROM waiting CROSS JOIN LATERAL (
            SELECT it.organization_id FROM labdata.job_execution it
            WHERE it.status = 'queued' AND it.organization_id > waiting.organization_id
            ORDER BY it.organization_id LIMIT 1) next),
    turns AS (
        SELECT oldest.id, oldest.created_at, held.running + row_number() OVER (
            PARTITION BY waiting.organization_id ORDER BY oldest.created_at, oldest.id) AS turn
        FROM waiting
        CROSS JOIN LATERAL (
            SELECT count(*) AS running FROM labdata.run_lease
            WHERE run_lease.organization_id = waiting.organization_id) held
        CROSS JOIN LATERAL (
            SELECT it.id, it.created_at FROM labdata.job_execution it
            WHERE it.status = 'queued' AND it.organization_id = waiting.organization_id
            ORDER BY it.created_at, it.id LIMIT $5) oldest),
    locked AS MATERIALIZED (
        SELECT it.id, turns.turn, turns.created_at
        FROM labdata.job_execution it JOIN turns ON turns.id = it.id
        WHERE it.status = 'queued' ORDER BY turns.turn, turns.created_at, it.id
        LIMIT $4 FOR UPDATE OF it SKIP LOCKED),
    chosen AS (
        SELECT id, turn, row_number() OVER (ORDER BY turn, created_at, id) AS slot FROM locked),
    claimed AS (
        UPDATE labdata.job_execution it SET status = 'running', started_at = $1, deadline = $3,
            attempt = it.attempt + 1
        FROM labdata.job
        WHERE job.organization_id = it.organization_id AND job.id = it.job_id
        AND it.id = ANY (ARRAY(
            SELECT chosen.id FROM chosen WHERE chosen.turn = 1 OR chosen.slot <= $6
            OR (SELECT count(*) FROM (SELECT 1 FROM labdata.organization LIMIT 2) several) < 2))
        RETURNING it.*, job.name AS job_name),
    held AS (
        INSERT INTO labdata.run_lease (execution_id, organization_id, attempt, expires_at)
        SELECT id, organization_id, attempt, $2 FROM claimed)
    SELECT * FROM claimed ORDER BY created_at, id";

#[derive(QueryableByName)]
struct ClaimRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    started_by: Uuid,
    #[diesel(sql_type = BigInt)]
    attempt: i64,
    #[diesel(embed)]
    execution: ExecutionRow,
}

impl TryFrom<ClaimRow> for ClaimedRun {
    type Error = PortError;

    fn try_from(row: ClaimRow) -> Result<Self, PortError> {
        let execution: Execution = row.execution.try_into()?;
        Ok(Self {
            claim: RunClaim {
                organization: OrganizationId::new(row.organization_id),
                execution: execution.id,
                attempt: u32::try_from(row.attempt)
                    .map_err(|_| corrupt("job_execution", "attempt", execution.id))?,
            },
            execution,
            started_by: UserId::new(row.started_by),
        })
    }
}

/// A lease that has expired.
#[derive(Queryable, Selectable)]
#[diesel(table_name = run_lease)]
struct EndedLease {
    organization_id: Uuid,
    execution_id: Uuid,
}

/// Outcome for a lease that has expired.
enum Expired {
    /// The worker renewed it in time after all, or another server took the run.
    Nothing,
    Requeued,
    Failed(Box<OverdueExecution>),
}

/// Returns true if the claim holds the run, whose execution the caller has locked.
async fn holds(
    connection: &mut Connection,
    claim: RunClaim,
    lock: LeaseLock,
) -> Result<bool, Fault> {
    let lease = leases::lock(connection, claim.organization, claim.execution, lock).await?;
    Ok(lease.is_some_and(|lease| lease.is_held_by(claim.attempt)))
}

/// Returns a locked run to the queue; does nothing unless it is running.
async fn requeue(
    connection: &mut Connection,
    organization: OrganizationId,
    running: Execution,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let Some(queued) = running.requeue() else {
        return Ok(());
    };
    diesel::update(job_execution::table.find(queued.id.as_uuid()))
        .set((
            job_execution::status.eq(queued.state.as_str()),
            job_execution::started_at.eq(queued.started_at),
            job_execution::deadline.eq(queued.state.deadline()),
        ))
        .execute(connection)
        .await?;
    leases::release(connection, organization, &[queued.id.as_uuid()], now).await?;
    notify(connection, Channel::RunQueued).await
}

async fn finish(
    connection: &mut Connection,
    claim: RunClaim,
    end: &RunEnd,
    now: OffsetDateTime,
) -> Result<Option<Execution>, Fault> {
    let running = lock(connection, claim.organization, claim.execution).await?;
    if !holds(connection, claim, LeaseLock::Exclusive).await? {
        return Ok(None);
    }
    let Some(ended) = running.end(end, now) else {
        return Ok(None);
    };
    let one = std::slice::from_ref(&ended);
    store_ends(connection, claim.organization, one, now).await?;
    Ok(Some(ended))
}

async fn release(
    connection: &mut Connection,
    claim: RunClaim,
    now: OffsetDateTime,
) -> Result<bool, Fault> {
    let running = lock(connection, claim.organization, claim.execution).await?;
    if !holds(connection, claim, LeaseLock::Exclusive).await? {
        return Ok(false);
    }
    requeue(connection, claim.organization, running, now).await?;
    Ok(true)
}

async fn cancel(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    now: OffsetDateTime,
) -> Result<Result<Execution, CancelError>, Fault> {
    let execution = lock(connection, organization, id).await?;
    let cancelled = match execution.cancel(now) {
        Ok(cancelled) => cancelled,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let one = std::slice::from_ref(&cancelled);
    store_ends(connection, organization, one, now).await?;
    Ok(Ok(cancelled))
}

async fn expire(
    connection: &mut Connection,
    ended: &EndedLease,
    now: OffsetDateTime,
) -> Result<Expired, Fault> {
    let organization = OrganizationId::new(ended.organization_id);
    let id = ExecutionId::new(ended.execution_id);
    let running = lock(connection, organization, id).await?;
    let lease = leases::lock(connection, organization, id, LeaseLock::Exclusive).await?;
    if !lease.is_some_and(|lease| lease.has_expired(now)) {
        return Ok(Expired::Nothing);
    }
    let lost_workers: i64 = diesel::update(job_execution::table.find(ended.execution_id))
        .set(job_execution::lost_workers.eq(job_execution::lost_workers + 1))
        .returning(job_execution::lost_workers)
        .get_result(connection)
        .await?;
    match after_lost_worker(u32::try_from(lost_workers).unwrap_or(u32::MAX)) {
        LostWorker::Requeue => {
            requeue(connection, organization, running, now).await?;
            Ok(Expired::Requeued)
        }
        LostWorker::Fail(end) => {
            let Some(failed) = running.end(&end, now) else {
                return Err(corrupt("run_lease", "execution_id", id).into());
            };
            store_ends(connection, organization, std::slice::from_ref(&failed), now).await?;
            Ok(Expired::Failed(Box::new(OverdueExecution {
                organization,
                execution: failed,
            })))
        }
    }
}

async fn issue_key(
    connection: &mut Connection,
    claim: RunClaim,
    key: &ApiKey,
) -> Result<bool, Fault> {
    if !holds(connection, claim, LeaseLock::Shared).await? {
        return Ok(false);
    }
    key_rows::insert(connection, key).await?;
    Ok(true)
}

async fn store_nonce(connection: &mut Connection, nonce: &RunNonce) -> Result<bool, Fault> {
    let claim = RunClaim {
        organization: nonce.organization,
        execution: nonce.execution,
        attempt: nonce.attempt,
    };
    if !holds(connection, claim, LeaseLock::Shared).await? {
        return Ok(false);
    }
    nonces::store(connection, nonce).await?;
    Ok(true)
}

async fn redeem_nonce(
    connection: &mut Connection,
    claim: RunClaim,
    key: &ApiKey,
) -> Result<NonceUse, Fault> {
    if !holds(connection, claim, LeaseLock::Shared).await? {
        return Ok(NonceUse::RunLost);
    }
    nonces::redeem(connection, claim, key).await
}

#[async_trait]
impl RunQueue for PgRunQueue {
    async fn enqueue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        let queued = transacted!(self.database.of(organization), connection => async {
            enqueue(connection, organization, run).await?;
            load(connection, organization, run.id).await
        });
        Ok(queued?)
    }

    async fn claim(
        &self,
        now: OffsetDateTime,
        lease: Duration,
        timeout: Duration,
        slots: FreeSlots,
    ) -> Result<Vec<ClaimedRun>, PortError> {
        let rows: Vec<ClaimRow> = retried!(async {
            let mut connection = self.database.connection().await?;
            let rows = diesel::sql_query(CLAIM)
                .bind::<Timestamptz, _>(now)
                .bind::<Timestamptz, _>(now + lease)
                .bind::<Timestamptz, _>(now + timeout)
                .bind::<BigInt, _>(i64::from(slots.free))
                .bind::<BigInt, _>(i64::from(slots.free) + CLAIMED_BY_OTHERS)
                .bind::<BigInt, _>(i64::from(slots.for_running(true)))
                .load(&mut connection)
                .await?;
            Ok::<_, Fault>(rows)
        })?;
        rows.into_iter().map(ClaimedRun::try_from).collect()
    }

    async fn issue_key(&self, claim: RunClaim, key: &ApiKey) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => issue_key(connection, claim, key))?)
    }

    async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => store_nonce(connection, nonce))?)
    }

    async fn redeem_nonce(&self, claim: RunClaim, key: &ApiKey) -> Result<NonceUse, PortError> {
        Ok(transacted!(self.database, connection => redeem_nonce(connection, claim, key))?)
    }

    async fn renew(&self, claim: RunClaim, until: OffsetDateTime) -> Result<bool, PortError> {
        let held = retried!(async {
            let mut connection = self.database.connection().await?;
            let held = run_lease::table
                .filter(run_lease::execution_id.eq(claim.execution.as_uuid()))
                .filter(run_lease::organization_id.eq(claim.organization.as_uuid()))
                .filter(run_lease::attempt.eq(i64::from(claim.attempt)));
            let renewed = diesel::update(held)
                .set(run_lease::expires_at.eq(until))
                .execute(&mut connection)
                .await?;
            Ok::<_, Fault>(renewed == 1)
        });
        Ok(held?)
    }

    async fn finish(
        &self,
        claim: RunClaim,
        end: &RunEnd,
        now: OffsetDateTime,
    ) -> Result<Option<Execution>, PortError> {
        Ok(transacted!(self.database, connection => finish(connection, claim, end, now))?)
    }

    async fn release(&self, claim: RunClaim, now: OffsetDateTime) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => release(connection, claim, now))?)
    }

    async fn expire(&self, now: OffsetDateTime, limit: u32) -> Result<ExpiredRuns, PortError> {
        let ended: Vec<EndedLease> = retried!(async {
            let mut connection = self.database.connection().await?;
            let ended = run_lease::table
                .filter(run_lease::expires_at.le(now))
                .order(run_lease::expires_at)
                .limit(i64::from(limit))
                .select(EndedLease::as_select())
                .load(&mut connection)
                .await?;
            Ok::<_, Fault>(ended)
        })?;
        let mut expired = ExpiredRuns::default();
        for lease in &ended {
            match transacted!(self.database, connection => expire(connection, lease, now)) {
                Ok(Expired::Nothing) => {}
                Ok(Expired::Requeued) => expired.requeued += 1,
                Ok(Expired::Failed(failed)) => expired.failed.push(*failed),
                Err(fault) => {
                    let error = PortError::from(fault);
                    if matches!(error, PortError::DiskFull(_) | PortError::Unavailable(_)) {
                        return Err(error);
                    }
                    // One that is locked must not delay the remaining ones.
                    tracing::warn!(execution = %lease.execution_id, %error, "a lost run stays for the next sweep");
                }
            }
        }
        Ok(expired)
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError> {
        let cancelled = transacted!(self.database.of(organization), connection => cancel(connection, organization, id, now));
        Ok(cancelled.map_err(PortError::from)??)
    }

    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
        Box::new(self.database.listen(news.into()))
    }
}
