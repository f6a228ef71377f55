//! Leases on runs of jobs and on trainings, in tables of their own: a worker renews its lease while
//! writes of the script lock the execution, or reports change the version.
//!
//! A transaction that locks both a record and its lease locks the record first.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::ids::OrganizationId;
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::Fault,
        listen::{Channel, notify_of},
        pool::Connection,
    },
    schema::{api_key, run_nonce},
};

/// Lock on a lease until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseLock {
    /// It cannot be taken away.
    Shared,
    /// It cannot be renewed either.
    Exclusive,
}

/// A lease that has expired.
#[derive(Debug, Queryable)]
pub(crate) struct ExpiredLease {
    pub(crate) organization: Uuid,
    pub(crate) id: Uuid,
}

/// Makes the functions on the leases of one table.
macro_rules! leases_of {
    ($(#[$doc:meta])* $module:ident: $table:ident by $key:ident) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use diesel::prelude::*;
            use diesel_async::RunQueryDsl;
            use labdata_domain::{ids::OrganizationId, work::Lease};
            use labdata_ports::PortError;
            use time::OffsetDateTime;
            use uuid::Uuid;

            use super::{ExpiredLease, LeaseLock};
            use crate::{
                database::{
                    errors::{Fault, corrupt, retried},
                    pool::{Connection, Database},
                },
                schema::$table,
            };

            /// Locks and reads a lease, if there is one.
            pub(crate) async fn lock(
                connection: &mut Connection,
                organization: OrganizationId,
                id: Uuid,
                lock: LeaseLock,
            ) -> Result<Option<Lease>, Fault> {
                let lease = $table::table
                    .filter($table::$key.eq(id))
                    .filter($table::organization_id.eq(organization.as_uuid()))
                    .select(($table::attempt, $table::expires_at));
                let row: Option<(i64, OffsetDateTime)> = match lock {
                    LeaseLock::Shared => lease.for_share().first(connection).await,
                    LeaseLock::Exclusive => lease.for_update().first(connection).await,
                }
                .optional()?;
                let lease = row.map(|(attempt, expires_at)| {
                    Ok::<_, PortError>(Lease {
                        attempt: u32::try_from(attempt)
                            .map_err(|_| corrupt(stringify!($table), "attempt", id))?,
                        expires_at,
                    })
                });
                Ok(lease.transpose()?)
            }

            /// Returns true if the claim with that number holds the lease, which is then locked. The
            /// caller has locked the record if it locks the lease exclusively.
            pub(crate) async fn holds(
                connection: &mut Connection,
                organization: OrganizationId,
                id: Uuid,
                attempt: u32,
                kind: LeaseLock,
            ) -> Result<bool, Fault> {
                let lease = lock(connection, organization, id, kind).await?;
                Ok(lease.is_some_and(|lease| lease.is_held_by(attempt)))
            }

            /// Renews the lease that the claim holds; returns false if it holds none.
            pub(crate) async fn renew(
                database: &Database,
                organization: OrganizationId,
                id: Uuid,
                attempt: u32,
                until: OffsetDateTime,
            ) -> Result<bool, PortError> {
                let held = retried!(async {
                    let mut connection = database.connection().await?;
                    let held = $table::table
                        .filter($table::$key.eq(id))
                        .filter($table::organization_id.eq(organization.as_uuid()))
                        .filter($table::attempt.eq(i64::from(attempt)));
                    let renewed = diesel::update(held)
                        .set($table::expires_at.eq(until))
                        .execute(&mut connection)
                        .await?;
                    Ok::<_, Fault>(renewed == 1)
                });
                Ok(held?)
            }

            /// Returns up to `limit` leases that have expired, longest first.
            pub(crate) async fn expired(
                database: &Database,
                now: OffsetDateTime,
                limit: u32,
            ) -> Result<Vec<ExpiredLease>, PortError> {
                let expired = retried!(async {
                    let mut connection = database.connection().await?;
                    let expired = $table::table
                        .filter($table::expires_at.le(now))
                        .order($table::expires_at)
                        .limit(i64::from(limit))
                        .select(($table::organization_id, $table::$key))
                        .load(&mut connection)
                        .await?;
                    Ok::<_, Fault>(expired)
                });
                Ok(expired?)
            }

            /// Ends leases.
            pub(crate) async fn end(connection: &mut Connection, ids: &[Uuid]) -> Result<(), Fault> {
                diesel::delete($table::table.filter($table::$key.eq_any(ids)))
                    .execute(connection)
                    .await?;
                Ok(())
            }
        }
    };
}

leases_of! {
    /// Leases on runs of jobs.
    runs: run_lease by execution_id
}
leases_of! {
    /// Leases on trainings.
    trainings: training_lease by model_version_id
}

/// Handles the failure to take one lost run: returns an error if the whole sweep has to end. One that
/// is locked must not delay the remaining ones.
pub(crate) fn leave_for_next_sweep(fault: Fault, lease: &ExpiredLease) -> Result<(), PortError> {
    let error = PortError::from(fault);
    // The remaining ones would fail in the same way.
    if matches!(error, PortError::DiskFull(_) | PortError::Unavailable(_)) {
        return Err(error);
    }
    tracing::warn!(run = %lease.id, %error, "a lost run stays for the next sweep");
    Ok(())
}

/// Ends leases, removes nonces, and revokes the keys of the runs.
pub(crate) async fn release(
    connection: &mut Connection,
    organization: OrganizationId,
    executions: &[Uuid],
    now: OffsetDateTime,
) -> Result<(), Fault> {
    runs::end(connection, executions).await?;
    // A nonce that is still unused must not yield a key after the end.
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
        // A key that was revoked earlier retains that time.
        .filter(api_key::revoked_at.is_null());
    diesel::update(keys)
        .set(api_key::revoked_at.eq(Some(now)))
        .execute(connection)
        .await?;
    Ok(())
}
