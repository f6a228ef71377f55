//! Rows of the queue, and what ends with a lease.
//!
//! A transaction that locks several of them locks the model before the work, and the work before its
//! record, so that claims, ends and cancellations wait for each other and never deadlock.

use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Double, Nullable, Timestamptz},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    work::{Lease, NewRun, WorkId, WorkKind},
};
use labdata_ports::{PortError, work::WorkClaim};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        listen::{Channel, notify, notify_of},
        pool::Connection,
    },
    schema::{api_key, run_nonce, training_attempt, work},
};

/// States of work in the queue.
pub(crate) const QUEUED: &str = "queued";
pub(crate) const RUNNING: &str = "running";

/// Locked work.
#[derive(Queryable)]
pub(crate) struct WorkRow {
    attempt: i64,
    state: String,
    pub(crate) lost_workers: i64,
    queued_at: OffsetDateTime,
    /// End of the lease, which each renewal changes.
    lease_expires_at: Option<OffsetDateTime>,
}

impl WorkRow {
    /// Returns true if the claim with that number holds the work.
    pub(crate) fn is_held_by(&self, attempt: u32) -> bool {
        self.state == RUNNING && self.attempt == i64::from(attempt)
    }

    /// Returns true if it is held under that lease, which was not renewed since.
    pub(crate) fn is_held_under(&self, lease: Lease) -> bool {
        self.is_held_by(lease.attempt) && self.lease_expires_at == Some(lease.expires_at)
    }
}

/// Reads the number of a claim.
pub(crate) fn attempt(stored: i64, work: WorkId) -> Result<u32, PortError> {
    u32::try_from(stored).map_err(|_| corrupt("work", "attempt", work))
}

/// Puts work into the queue in the transaction that stores its record; workers are notified when it commits.
pub(crate) async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WorkId,
    queued_at: OffsetDateTime,
) -> Result<(), Fault> {
    let (execution, version) = match id {
        WorkId::Execution(id) => (Some(id.as_uuid()), None),
        WorkId::Training(id) => (None, Some(id.as_uuid())),
    };
    diesel::insert_into(work::table)
        .values((
            work::organization_id.eq(organization.as_uuid()),
            work::execution_id.eq(execution),
            work::model_version_id.eq(version),
            work::queued_at.eq(queued_at),
        ))
        .execute(connection)
        .await?;
    notify(connection, Channel::Queued(id.kind())).await
}

/// Puts the execution that retries a lost run into the queue, in its place. Attempts count on, so that the next
/// worker can remove from a backend what each of them left.
pub(crate) async fn insert_retry(
    connection: &mut Connection,
    organization: OrganizationId,
    retry: ExecutionId,
    lost: &WorkRow,
) -> Result<(), Fault> {
    diesel::insert_into(work::table)
        .values((
            work::organization_id.eq(organization.as_uuid()),
            work::execution_id.eq(retry.as_uuid()),
            work::queued_at.eq(lost.queued_at),
            work::attempt.eq(lost.attempt),
        ))
        .execute(connection)
        .await?;
    notify(connection, Channel::Queued(WorkKind::Run)).await
}

/// Puts runs into the queue, as [`insert`] does.
pub(crate) async fn insert_runs(
    connection: &mut Connection,
    organization: OrganizationId,
    runs: &[NewRun],
) -> Result<(), Fault> {
    let rows: Vec<_> = runs
        .iter()
        .map(|run| {
            (
                work::organization_id.eq(organization.as_uuid()),
                work::execution_id.eq(run.id.as_uuid()),
                work::queued_at.eq(run.queued_at),
            )
        })
        .collect();
    diesel::insert_into(work::table)
        .values(&rows)
        .execute(connection)
        .await?;
    notify(connection, Channel::Queued(WorkKind::Run)).await
}

/// Locks work; `None` if the queue does not have it. The caller has locked the model of a training, and
/// not yet the record.
pub(crate) async fn lock(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WorkId,
) -> Result<Option<WorkRow>, Fault> {
    Ok(work::table
        .find(id.as_uuid())
        .filter(work::organization_id.eq(organization.as_uuid()))
        .select((
            work::attempt,
            work::state,
            work::lost_workers,
            work::queued_at,
            work::lease_expires_at,
        ))
        // UPDATE, because callers delete or requeue the row next: raising a weaker lock can deadlock.
        .for_update()
        .first(connection)
        .await
        .optional()?)
}

/// Returns true if the claim holds its work, which then cannot be taken away until the transaction ends.
pub(crate) async fn holds(connection: &mut Connection, claim: WorkClaim) -> Result<bool, Fault> {
    let held: Option<Uuid> = work::table
        .find(claim.work.as_uuid())
        .filter(work::organization_id.eq(claim.organization.as_uuid()))
        .filter(work::state.eq(RUNNING))
        // The attempt is the fence: a worker that lost the work changes nothing.
        .filter(work::attempt.eq(i64::from(claim.attempt)))
        .select(work::id)
        .for_share()
        .first(connection)
        .await
        .optional()?;
    Ok(held.is_some())
}

/// Renews the lease for that many seconds from now, or gives it up for none; returns false if the claim
/// holds none.
pub(crate) async fn renew(
    connection: &mut Connection,
    claim: WorkClaim,
    seconds: f64,
) -> Result<bool, Fault> {
    let held = work::table
        .find(claim.work.as_uuid())
        .filter(work::organization_id.eq(claim.organization.as_uuid()))
        .filter(work::state.eq(RUNNING))
        .filter(work::attempt.eq(i64::from(claim.attempt)));
    // `Lease::GIVEN_UP`, or a time of the database, as those of servers differ.
    let until = sql::<Nullable<Timestamptz>>("CASE WHEN ")
        .bind::<Double, _>(seconds)
        .sql(" = 0 THEN timestamptz 'epoch' ELSE clock_timestamp() + make_interval(secs => ")
        .bind::<Double, _>(seconds)
        .sql(") END");
    let renewed = diesel::update(held)
        .set(work::lease_expires_at.eq(until))
        .execute(connection)
        .await?;
    Ok(renewed == 1)
}

/// Counts the loss of the worker of locked work.
pub(crate) async fn lose_worker(connection: &mut Connection, id: WorkId) -> Result<(), Fault> {
    // Counted apart from attempts: a worker that shuts down returns its work without a loss.
    diesel::update(work::table.find(id.as_uuid()))
        .set(work::lost_workers.eq(work::lost_workers + 1))
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns locked work to the queue; workers are notified when the transaction commits.
pub(crate) async fn requeue(
    connection: &mut Connection,
    organization: OrganizationId,
    id: WorkId,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    diesel::update(work::table.find(id.as_uuid()))
        .set((
            work::state.eq(QUEUED),
            work::lease_expires_at.eq(None::<OffsetDateTime>),
        ))
        .execute(connection)
        .await?;
    // The next attempt gets a separate key or token; those of the lost attempt end.
    end_leases(connection, organization, id.kind(), &[id.as_uuid()], now).await?;
    // Delivered at the commit, so no worker looks for the row before it is there.
    notify(connection, Channel::Queued(id.kind())).await
}

/// Removes locked work of one kind, which has ended, from the queue.
pub(crate) async fn remove(
    connection: &mut Connection,
    organization: OrganizationId,
    kind: WorkKind,
    ids: &[Uuid],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    // The row is the claim: without it every renewal and every report of the old holder fails.
    diesel::delete(work::table.filter(work::id.eq_any(ids)))
        .execute(connection)
        .await?;
    end_leases(connection, organization, kind, ids, now).await
}

/// Ends what was issued for leases.
async fn end_leases(
    connection: &mut Connection,
    organization: OrganizationId,
    kind: WorkKind,
    ids: &[Uuid],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    match kind {
        WorkKind::Run => {
            // A nonce that is still unused must not yield a key after the end.
            diesel::delete(run_nonce::table.filter(run_nonce::execution_id.eq_any(ids)))
                .execute(connection)
                .await?;
            revoke_keys(connection, organization, ids, now).await?;
        }
        WorkKind::Training => {
            let attempts =
                training_attempt::table.filter(training_attempt::model_version_id.eq_any(ids));
            diesel::delete(attempts).execute(connection).await?;
        }
    }
    // Followers of the log learn of the end without polling.
    notify_of(connection, Channel::Ended(kind), ids).await
}

/// Revokes the keys of runs.
pub(crate) async fn revoke_keys(
    connection: &mut Connection,
    organization: OrganizationId,
    executions: &[Uuid],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    let keys = api_key::table
        .filter(api_key::organization_id.eq(organization.as_uuid()))
        .filter(api_key::execution_id.eq_any(executions.iter().copied().map(Some)))
        // A key that was revoked earlier retains that time.
        .filter(api_key::revoked_at.is_null());
    diesel::update(keys)
        .set(api_key::revoked_at.eq(Some(now)))
        .execute(connection)
        .await?;
    Ok(())
}
