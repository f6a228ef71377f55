//! The queue of runs on the platform.
//!
//! Whoever locks both an execution and its lease locks the execution first. Renewing touches the
//! lease alone, as writes of the script hold the execution.

pub(crate) mod logs;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::{CancelError, Execution, ExecutionState, Origin},
    ids::{ExecutionId, OrganizationId, UserId},
    keys::ApiKey,
    runs::{MAX_LOST_WORKERS, PlatformRun, RunEnd, WORKER_LOST},
    triggers::event::EventKind,
};
use labdata_ports::{
    PortError,
    executions::OverdueExecution,
    runs::{
        CancelExecutionError, ClaimedRun, ExpiredRuns, NewRun, RunClaim, RunNews, RunQueue, Wakeups,
    },
};
use time::{Duration, OffsetDateTime};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, end, retried},
        listen::Channel,
        pool::{Connection, Database},
        transaction,
    },
    executions::rows::{ExecutionRow, insert, load, lock, store_state},
    keys,
    schema::{api_key, job_execution, run_lease},
    triggers::events,
};

/// The queue of runs in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgRunQueue {
    database: Database,
}

/// Does work in a transaction, again as long as it clashes with others.
macro_rules! transacted {
    ($queue:expr, $connection:ident => $work:expr) => {
        retried!(async {
            let mut connection = $queue.database.connection().await?;
            transaction::begin(&mut connection).await?;
            let $connection = &mut connection;
            let outcome = $work.await;
            end(&mut connection, outcome).await
        })
    };
}

impl PgRunQueue {
    /// The queue over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Queues a run in the transaction of what asks for it; workers hear of it when the transaction
/// commits.
pub(crate) async fn enqueue(
    connection: &mut Connection,
    organization: OrganizationId,
    run: &NewRun,
) -> Result<(), Fault> {
    let execution = Execution {
        id: run.id,
        job_id: run.job,
        job_name: String::new(),
        origin: Origin::Platform(PlatformRun {
            script_version: run.script_version,
            trigger_file: run.trigger_file,
            parameters: run.parameters.clone(),
            source: run.source,
            exit_code: None,
        }),
        state: ExecutionState::Queued,
        created_at: run.queued_at,
        started_at: None,
    };
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
/// next, so that it does not matter how many runs each of them has. The array makes the planner
/// choose the rows once.
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
    claimed AS (
        UPDATE labdata.job_execution it SET status = 'running', started_at = $1, deadline = $3,
            attempt = it.attempt + 1
        FROM labdata.job
        WHERE job.organization_id = it.organization_id AND job.id = it.job_id
        AND it.id = ANY (ARRAY(
            SELECT it.id FROM labdata.job_execution it JOIN turns ON turns.id = it.id
            WHERE it.status = 'queued' ORDER BY turns.turn, turns.created_at, it.id
            LIMIT $4 FOR UPDATE OF it SKIP LOCKED))
        RETURNING it.*, job.name AS job_name),
    held AS (
        INSERT INTO labdata.run_lease (execution_id, organization_id, attempt, expires_at)
        SELECT id, organization_id, attempt, $2 FROM claimed)
    SELECT * FROM claimed ORDER BY created_at, id";

async fn notify(connection: &mut Connection, channel: Channel) -> Result<(), Fault> {
    diesel::sql_query(format!("NOTIFY {}", channel.name()))
        .execute(connection)
        .await?;
    Ok(())
}

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

/// A lease that has ended.
#[derive(Queryable, Selectable)]
#[diesel(table_name = run_lease)]
struct EndedLease {
    organization_id: Uuid,
    execution_id: Uuid,
    attempt: i64,
}

/// What became of a lease that has ended.
enum Expired {
    /// Somebody else was there first.
    Nothing,
    Requeued,
    Failed(Box<OverdueExecution>),
}

/// Whether the run is still the holder's; its execution is locked by the caller.
async fn holds(connection: &mut Connection, claim: RunClaim) -> Result<bool, Fault> {
    let held: Option<Uuid> = run_lease::table
        .filter(run_lease::execution_id.eq(claim.execution.as_uuid()))
        .filter(run_lease::organization_id.eq(claim.organization.as_uuid()))
        .filter(run_lease::attempt.eq(i64::from(claim.attempt)))
        .select(run_lease::execution_id)
        .for_update()
        .first(connection)
        .await
        .optional()?;
    Ok(held.is_some())
}

/// Takes the lease away and revokes the keys: nobody runs it from now on.
async fn take_away(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    diesel::delete(run_lease::table.find(id.as_uuid()))
        .execute(connection)
        .await?;
    let keys = api_key::table
        .filter(api_key::organization_id.eq(organization.as_uuid()))
        .filter(api_key::execution_id.eq(Some(id.as_uuid())))
        .filter(api_key::revoked_at.is_null());
    diesel::update(keys)
        .set(api_key::revoked_at.eq(Some(now)))
        .execute(connection)
        .await?;
    notify(connection, Channel::RunEnded).await
}

/// Stores how an execution ended, with all that follows from that.
async fn conclude(
    connection: &mut Connection,
    organization: OrganizationId,
    ended: &Execution,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    store_state(connection, ended).await?;
    take_away(connection, organization, ended.id, now).await?;
    events::record(
        connection,
        organization,
        EventKind::JobCompleted(ended.id),
        now,
    )
    .await
}

/// Back into the queue.
async fn requeue(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    diesel::update(job_execution::table.find(id.as_uuid()))
        .set((
            job_execution::status.eq(ExecutionState::Queued.as_str()),
            job_execution::started_at.eq(None::<OffsetDateTime>),
            job_execution::deadline.eq(None::<OffsetDateTime>),
        ))
        .execute(connection)
        .await?;
    take_away(connection, organization, id, now).await?;
    notify(connection, Channel::RunQueued).await
}

async fn finish(
    connection: &mut Connection,
    claim: RunClaim,
    end: &RunEnd,
    now: OffsetDateTime,
) -> Result<Option<Execution>, Fault> {
    let standing = lock(connection, claim.organization, claim.execution).await?;
    if !holds(connection, claim).await? {
        return Ok(None);
    }
    let Some(ended) = standing.end(end, now) else {
        return Ok(None);
    };
    conclude(connection, claim.organization, &ended, now).await?;
    Ok(Some(ended))
}

async fn release(
    connection: &mut Connection,
    claim: RunClaim,
    now: OffsetDateTime,
) -> Result<bool, Fault> {
    lock(connection, claim.organization, claim.execution).await?;
    if !holds(connection, claim).await? {
        return Ok(false);
    }
    requeue(connection, claim.organization, claim.execution, now).await?;
    Ok(true)
}

async fn cancel(
    connection: &mut Connection,
    organization: OrganizationId,
    id: ExecutionId,
    now: OffsetDateTime,
) -> Result<Result<Execution, CancelError>, Fault> {
    let standing = lock(connection, organization, id).await?;
    let cancelled = match standing.cancel(now) {
        Ok(cancelled) => cancelled,
        Err(refusal) => return Ok(Err(refusal)),
    };
    conclude(connection, organization, &cancelled, now).await?;
    Ok(Ok(cancelled))
}

async fn expire(
    connection: &mut Connection,
    ended: &EndedLease,
    now: OffsetDateTime,
) -> Result<Expired, Fault> {
    let organization = OrganizationId::new(ended.organization_id);
    let id = ExecutionId::new(ended.execution_id);
    let standing = lock(connection, organization, id).await?;
    let still: Option<OffsetDateTime> = run_lease::table
        .find(ended.execution_id)
        .filter(run_lease::attempt.eq(ended.attempt))
        .filter(run_lease::expires_at.le(now))
        .select(run_lease::expires_at)
        .for_update()
        .first(connection)
        .await
        .optional()?;
    if still.is_none() {
        return Ok(Expired::Nothing);
    }
    let (lost, started_by): (i64, Uuid) =
        diesel::update(job_execution::table.find(ended.execution_id))
            .set(job_execution::lost_workers.eq(job_execution::lost_workers + 1))
            .returning((job_execution::lost_workers, job_execution::started_by))
            .get_result(connection)
            .await?;
    if lost < i64::from(MAX_LOST_WORKERS) {
        requeue(connection, organization, id, now).await?;
        return Ok(Expired::Requeued);
    }
    let Some(failed) = standing.end(&RunEnd::failed(WORKER_LOST), now) else {
        return Err(corrupt("run_lease", "execution_id", id).into());
    };
    conclude(connection, organization, &failed, now).await?;
    Ok(Expired::Failed(Box::new(OverdueExecution {
        organization,
        execution: failed,
        started_by: UserId::new(started_by),
    })))
}

async fn issue_key(
    connection: &mut Connection,
    claim: RunClaim,
    key: &ApiKey,
) -> Result<bool, Fault> {
    let held: Option<Uuid> = run_lease::table
        .filter(run_lease::execution_id.eq(claim.execution.as_uuid()))
        .filter(run_lease::organization_id.eq(claim.organization.as_uuid()))
        .filter(run_lease::attempt.eq(i64::from(claim.attempt)))
        .select(run_lease::execution_id)
        .for_share()
        .first(connection)
        .await
        .optional()?;
    if held.is_none() {
        return Ok(false);
    }
    keys::insert(connection, key).await?;
    Ok(true)
}

#[async_trait]
impl RunQueue for PgRunQueue {
    async fn enqueue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        let queued = transacted!(self, connection => async {
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
        limit: u32,
    ) -> Result<Vec<ClaimedRun>, PortError> {
        let rows: Vec<ClaimRow> = retried!(async {
            let mut connection = self.database.connection().await?;
            let rows = diesel::sql_query(CLAIM)
                .bind::<Timestamptz, _>(now)
                .bind::<Timestamptz, _>(now + lease)
                .bind::<Timestamptz, _>(now + timeout)
                .bind::<BigInt, _>(i64::from(limit))
                .bind::<BigInt, _>(i64::from(limit) + CLAIMED_BY_OTHERS)
                .load(&mut connection)
                .await?;
            Ok::<_, Fault>(rows)
        })?;
        rows.into_iter().map(ClaimedRun::try_from).collect()
    }

    async fn issue_key(&self, claim: RunClaim, key: &ApiKey) -> Result<bool, PortError> {
        Ok(transacted!(self, connection => issue_key(connection, claim, key))?)
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
        Ok(transacted!(self, connection => finish(connection, claim, end, now))?)
    }

    async fn release(&self, claim: RunClaim, now: OffsetDateTime) -> Result<bool, PortError> {
        Ok(transacted!(self, connection => release(connection, claim, now))?)
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
            match transacted!(self, connection => expire(connection, lease, now)) {
                Ok(Expired::Nothing) => {}
                Ok(Expired::Requeued) => expired.requeued += 1,
                Ok(Expired::Failed(failed)) => expired.failed.push(*failed),
                // One that cannot be had now must not keep the others waiting.
                Err(fault) => {
                    let error = PortError::from(fault);
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
        let cancelled = transacted!(self, connection => cancel(connection, organization, id, now));
        Ok(cancelled.map_err(PortError::from)??)
    }

    fn subscribe(&self, news: RunNews) -> Box<dyn Wakeups> {
        Box::new(Heard(self.database.listen(news.into())))
    }
}

/// A subscription to what the listener hears.
pub(crate) struct Heard(pub(crate) watch::Receiver<u64>);

#[async_trait]
impl Wakeups for Heard {
    async fn next(&mut self) {
        // The listener is there as long as the database is: without it nothing comes.
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
