//! Leases on runs, in a table of their own: a worker renews its lease while writes of the script lock
//! the execution.
//!
//! A transaction that locks both an execution and its lease locks the execution first.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId},
    runs::Lease,
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        listen::{Channel, notify_of},
        pool::Connection,
    },
    schema::{api_key, run_lease, run_nonce},
};

/// Lock on a lease until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseLock {
    /// It cannot be taken away.
    Shared,
    /// It cannot be renewed either.
    Exclusive,
}

/// Locks and reads the lease on a run, if there is one.
pub(crate) async fn lock(
    connection: &mut Connection,
    organization: OrganizationId,
    execution: ExecutionId,
    lock: LeaseLock,
) -> Result<Option<Lease>, Fault> {
    let lease = run_lease::table
        .filter(run_lease::execution_id.eq(execution.as_uuid()))
        .filter(run_lease::organization_id.eq(organization.as_uuid()))
        .select((run_lease::attempt, run_lease::expires_at));
    let row: Option<(i64, OffsetDateTime)> = match lock {
        LeaseLock::Shared => lease.for_share().first(connection).await,
        LeaseLock::Exclusive => lease.for_update().first(connection).await,
    }
    .optional()?;
    let lease = row.map(|(attempt, expires_at)| {
        Ok::<_, PortError>(Lease {
            attempt: u32::try_from(attempt)
                .map_err(|_| corrupt("run_lease", "attempt", execution))?,
            expires_at,
        })
    });
    Ok(lease.transpose()?)
}

/// Ends leases, removes nonces, and revokes the keys of the runs.
pub(crate) async fn release(
    connection: &mut Connection,
    organization: OrganizationId,
    executions: &[Uuid],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    diesel::delete(run_lease::table.filter(run_lease::execution_id.eq_any(executions)))
        .execute(connection)
        .await?;
    diesel::delete(run_nonce::table.filter(run_nonce::execution_id.eq_any(executions)))
        .execute(connection)
        .await?;
    revoke_keys(connection, organization, executions, now).await?;
    notify_of(connection, Channel::RunEnded, executions).await
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
        .filter(api_key::revoked_at.is_null());
    diesel::update(keys)
        .set(api_key::revoked_at.eq(Some(now)))
        .execute(connection)
        .await?;
    Ok(())
}
