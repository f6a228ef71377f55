//! The queue of work.

mod claim;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod nonces;
pub(crate) mod rows;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    executions::Execution,
    ids::OrganizationId,
    models::{TrainingEnd, TrainingResult},
    work::{FreeSlots, Lease, WorkEnd, WorkId, WorkKind, WorkRecord, WorkerLoss},
};
use labdata_ports::{
    PortError,
    work::{
        ClaimTerms, ClaimedWork, ExpiredWork, HeldWork, LostWork, Wakeups, WorkClaim, WorkNews,
        WorkQueue,
    },
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, retried, transacted},
        listen::Channel,
        pool::{Connection, Database},
    },
    executions::{self, ends::store_ends},
    models::training_ends,
    schema::job_execution,
    work::rows::WorkRow,
};

/// The queue of work in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgWorkQueue {
    database: Database,
}

impl PgWorkQueue {
    /// The queue over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Locks work and reads its record; `None` if the queue does not have it.
async fn lock(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WorkId,
) -> Result<Option<(WorkRow, WorkRecord)>, Fault> {
    // In the order of `rows`: model, work, record.
    if let WorkId::Training(version) = id {
        training_ends::lock_model_of(connection, organization, version).await?;
    }
    let Some(row) = rows::lock(connection, organization, id).await? else {
        return Ok(None);
    };
    let record = match id {
        WorkId::Execution(id) => {
            let execution = executions::rows::lock(connection, organization, id).await?;
            WorkRecord::Run(Box::new(execution))
        }
        WorkId::Training(id) => {
            WorkRecord::Training(Box::new(training_ends::lock(connection, id).await?))
        }
    };
    Ok(Some((row, record)))
}

/// Locks the work of a claim and reads its record; `None` unless the claim holds it.
async fn lock_held(
    connection: &mut Connection,
    claim: WorkClaim,
) -> Result<Option<WorkRecord>, Fault> {
    let locked = lock(connection, claim.organization, claim.work).await?;
    Ok(locked.and_then(|(row, record)| row.is_held_by(claim.attempt).then_some(record)))
}

/// Stores the record of locked work that stops running: queued again, or ended.
async fn store_stopped(
    connection: &mut Connection,
    organization: OrganizationId,
    record: &mut WorkRecord,
    result: Option<&TrainingResult>,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let (id, has_ended) = (record.id(), record.has_ended());
    match record {
        WorkRecord::Run(execution) if has_ended => {
            let one = std::slice::from_ref(&**execution);
            // It also removes the work, so nothing is left to requeue.
            return store_ends(connection, organization, one, now).await;
        }
        WorkRecord::Training(version) if has_ended => {
            return training_ends::store_end(connection, organization, version, result, now).await;
        }
        WorkRecord::Run(execution) => store_queued(connection, execution).await?,
        WorkRecord::Training(version) => {
            training_ends::store_state(connection, version, None).await?;
        }
    }
    rows::requeue(connection, organization, id, now).await
}

/// Stores the state of an execution that is queued again.
async fn store_queued(connection: &mut Connection, queued: &Execution) -> Result<(), Fault> {
    diesel::update(job_execution::table.find(queued.id.as_uuid()))
        .set((
            job_execution::status.eq(queued.state.as_str()),
            job_execution::started_at.eq(queued.started_at),
            job_execution::deadline.eq(queued.state.deadline()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn finish(
    connection: &mut Connection,
    claim: WorkClaim,
    end: &WorkEnd,
    now: OffsetDateTime,
) -> Result<Option<WorkRecord>, Fault> {
    // Under the lock: a worker that lost its lease must not end work that another one has.
    let record = lock_held(connection, claim).await?;
    let Some(mut ended) = record.and_then(|record| record.end(end, now)) else {
        return Ok(None);
    };
    let result = match end {
        WorkEnd::Training(TrainingEnd::Ready(result, _)) => Some(&**result),
        _ => None,
    };
    store_stopped(connection, claim.organization, &mut ended, result, now).await?;
    Ok(Some(ended))
}

async fn release(
    connection: &mut Connection,
    claim: WorkClaim,
    now: OffsetDateTime,
) -> Result<bool, Fault> {
    let record = lock_held(connection, claim).await?;
    let Some(mut queued) = record.and_then(WorkRecord::requeue) else {
        return Ok(false);
    };
    store_stopped(connection, claim.organization, &mut queued, None, now).await?;
    Ok(true)
}

/// Work with a lease.
#[derive(QueryableByName)]
struct HeldRow {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = BigInt)]
    attempt: i64,
    #[diesel(sql_type = Timestamptz)]
    lease_expires_at: OffsetDateTime,
}

impl HeldRow {
    fn held(&self) -> Result<HeldWork, PortError> {
        let kind = WorkKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == self.kind)
            .ok_or_else(|| corrupt("work", "kind", self.id))?;
        let work = kind.work(self.id);
        Ok(HeldWork {
            organization: OrganizationId::new(self.organization_id),
            work,
            lease: Lease {
                attempt: rows::attempt(self.attempt, work)?,
                expires_at: self.lease_expires_at,
            },
        })
    }
}

/// Lists work that is held.
async fn held(connection: &mut Connection) -> Result<Vec<HeldRow>, Fault> {
    // Without the database's clock: the sweep judges leases by the time that it has watched them unchanged.
    Ok(diesel::sql_query(
        "SELECT organization_id, kind, id, attempt, lease_expires_at FROM labdata.work \
         WHERE state = 'running'",
    )
    .load(connection)
    .await?)
}

/// Takes work from its holder; returns what follows unless the worker renewed the lease in time after all, or
/// another server took the work.
async fn expire(
    connection: &mut Connection,
    lost: LostWork,
    now: OffsetDateTime,
) -> Result<Option<WorkerLoss>, Fault> {
    let HeldWork {
        organization,
        work,
        lease,
    } = lost.held;
    let Some((row, record)) = lock(connection, organization, work).await? else {
        return Ok(None);
    };
    // Read again under the lock: the worker may have renewed it since the sweep listed it.
    if !row.is_held_under(lease) {
        return Ok(None);
    }
    rows::lose_worker(connection, work).await?;
    // The row was read before the loss was counted.
    let lost_workers = u32::try_from(row.lost_workers.saturating_add(1)).unwrap_or(u32::MAX);
    let mut consequence = record
        .lose_worker(lost_workers, lost.retry, now)
        .ok_or_else(|| corrupt("work", "state", work))?;
    if let Some(retry) = &consequence.retry {
        // Before the end of the lost run, which refers to it.
        executions::rows::insert_retry(connection, organization, retry).await?;
        rows::insert_retry(connection, organization, retry.id, &row).await?;
    }
    store_stopped(connection, organization, &mut consequence.record, None, now).await?;
    Ok(Some(consequence))
}

/// Handles the failure to take lost work: returns an error if the whole sweep has to end. Work that
/// is locked must not delay the rest.
fn leave_for_next_sweep(fault: Fault, lost: LostWork) -> Result<(), PortError> {
    let error = PortError::from(fault);
    // The remaining ones would fail in the same way.
    if matches!(error, PortError::DiskFull(_) | PortError::Unavailable(_)) {
        return Err(error);
    }
    tracing::warn!(work = %lost.held.work, %error, "lost work stays for the next sweep");
    Ok(())
}

#[async_trait]
impl WorkQueue for PgWorkQueue {
    async fn claim(
        &self,
        kind: WorkKind,
        slots: FreeSlots,
        terms: ClaimTerms,
    ) -> Result<Vec<ClaimedWork>, PortError> {
        Ok(transacted!(self.database, connection => claim::claim(connection, kind, slots, terms))?)
    }

    async fn renew(&self, claim: WorkClaim, lease: Duration) -> Result<bool, PortError> {
        let seconds = lease.as_seconds_f64();
        // A statement alone is its own transaction; a failed renewal must not cost the lease.
        Ok(retried!(async {
            let mut connection = self.database.connection().await?;
            rows::renew(&mut connection, claim, seconds).await
        })?)
    }

    async fn finish(
        &self,
        claim: WorkClaim,
        end: &WorkEnd,
        now: OffsetDateTime,
    ) -> Result<Option<WorkRecord>, PortError> {
        Ok(transacted!(self.database, connection => finish(connection, claim, end, now))?)
    }

    async fn release(&self, claim: WorkClaim, now: OffsetDateTime) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => release(connection, claim, now))?)
    }

    async fn held(&self) -> Result<Vec<HeldWork>, PortError> {
        let rows = retried!(async {
            let mut connection = self.database.connection().await?;
            held(&mut connection).await
        })?;
        rows.iter().map(HeldRow::held).collect()
    }

    async fn expire(
        &self,
        now: OffsetDateTime,
        lost: &[LostWork],
    ) -> Result<ExpiredWork, PortError> {
        let mut expired = ExpiredWork::default();
        for lost in lost.iter().copied() {
            // A transaction each: a run that a write has locked delays no other.
            match transacted!(self.database, connection => expire(connection, lost, now)) {
                Ok(None) => {}
                Ok(Some(WorkerLoss {
                    record,
                    retry: None,
                })) if record.has_ended() => expired.failed.push(record),
                Ok(Some(_)) => expired.requeued += 1,
                Err(fault) => leave_for_next_sweep(fault, lost)?,
            }
        }
        Ok(expired)
    }

    fn subscribe(&self, kind: WorkKind, news: WorkNews) -> Box<dyn Wakeups> {
        Box::new(self.database.listen(match news {
            WorkNews::Queued => Channel::Queued(kind),
            WorkNews::Ended => Channel::Ended(kind),
        }))
    }

    fn follow(&self, work: WorkId) -> Box<dyn Wakeups> {
        Box::new(self.database.follow(work.as_uuid()))
    }
}
