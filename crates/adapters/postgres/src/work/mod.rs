//! The queue of runs on the platform.

pub(crate) mod claims;
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
    people::{ApiKey, run_nonce::RunNonce},
    work::{FreeSlots, LostWorker, NewRun, RunEnd, after_lost_worker},
};
use labdata_ports::{
    PortError,
    executions::OverdueExecution,
    work::{
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
    people::rows as key_rows,
    schema::job_execution,
    work::{
        claims::{CLAIMED_BY_OTHERS, claim_statement},
        leases::{ExpiredLease, LeaseLock, leave_for_next_sweep},
    },
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
    insert(connection, organization, &execution, run.started_by()).await?;
    notify(connection, Channel::RunQueued).await
}

/// Takes queued runs.
const CLAIM: &str = claim_statement! {
    table: "job_execution",
    from: "queued" to: "running",
    and_sets: ", deadline = $6",
    lease: "run_lease" by "execution_id",
    joined: "job" on "job_id",
    columns: "job.name AS job_name",
    recorded: ", started AS (
        INSERT INTO labdata.event_log (organization_id, type, at, job_execution_id)
        SELECT organization_id, 'job_execution.started', $1, id FROM claimed ORDER BY created_at, id
        RETURNING pg_notify('labdata_event_log', organization_id::text))"
};

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
    let id = claim.execution.as_uuid();
    leases::runs::holds(connection, claim.organization, id, claim.attempt, lock).await
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
    // The next attempt gets a separate key; the one of the lost attempt is revoked.
    leases::release(connection, organization, &[queued.id.as_uuid()], now).await?;
    notify(connection, Channel::RunQueued).await
}

async fn finish(
    connection: &mut Connection,
    claim: RunClaim,
    end: &RunEnd,
    now: OffsetDateTime,
) -> Result<Option<Execution>, Fault> {
    // The execution before its lease, as in every transaction that locks both.
    let running = lock(connection, claim.organization, claim.execution).await?;
    // Under the lock: a worker that lost its lease must not end a run that another one has.
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
    expired: &ExpiredLease,
    now: OffsetDateTime,
) -> Result<Expired, Fault> {
    let organization = OrganizationId::new(expired.organization);
    let id = ExecutionId::new(expired.id);
    let running = lock(connection, organization, id).await?;
    let lease =
        leases::runs::lock(connection, organization, expired.id, LeaseLock::Exclusive).await?;
    // Read again under the lock: the worker may have renewed it since the sweep listed it.
    if !lease.is_some_and(|lease| lease.has_expired(now)) {
        return Ok(Expired::Nothing);
    }
    // Counted apart from attempts: a worker that shuts down returns its runs without a loss.
    let lost_workers: i64 = diesel::update(job_execution::table.find(expired.id))
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
    // Locked until the key is stored: the lease cannot end in between, and its end revokes the key.
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
        // No transaction around it: one statement takes the runs, marks them and inserts their leases.
        let rows: Vec<ClaimRow> = retried!(async {
            let mut connection = self.database.connection().await?;
            let rows = diesel::sql_query(CLAIM)
                .bind::<Timestamptz, _>(now)
                .bind::<Timestamptz, _>(now + lease)
                .bind::<BigInt, _>(i64::from(slots.free))
                .bind::<BigInt, _>(i64::from(slots.free) + CLAIMED_BY_OTHERS)
                .bind::<BigInt, _>(i64::from(slots.for_running(true)))
                .bind::<Timestamptz, _>(now + timeout)
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
        let id = claim.execution.as_uuid();
        leases::runs::renew(&self.database, claim.organization, id, claim.attempt, until).await
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
        let leases = leases::runs::expired(&self.database, now, limit).await?;
        let mut expired = ExpiredRuns::default();
        for lease in &leases {
            // A transaction each: a run that a write has locked delays no other.
            match transacted!(self.database, connection => expire(connection, lease, now)) {
                Ok(Expired::Nothing) => {}
                Ok(Expired::Requeued) => expired.requeued += 1,
                Ok(Expired::Failed(failed)) => expired.failed.push(*failed),
                Err(fault) => leave_for_next_sweep(fault, lease)?,
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
        Box::new(self.database.listen(Channel::of_runs(news)))
    }
}
