//! Nonces that runs exchange for their keys. The caller has locked the work of the run.

use diesel::{prelude::*, upsert::excluded};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ExecutionId, OrganizationId, UserId},
    people::{
        ApiKey,
        run_nonce::{RunNonce, RunNonceHash},
    },
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    work::{NonceUse, WorkClaim},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Connection,
    },
    people::rows::{self as key_rows, read_scopes, scope_names},
    schema::run_nonce,
    work::rows,
};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = run_nonce)]
struct RunNonceRow {
    execution_id: Uuid,
    organization_id: Uuid,
    attempt: i64,
    user_id: Uuid,
    scopes: Vec<String>,
    hash: Vec<u8>,
    expires_at: OffsetDateTime,
    key_expires_at: Option<OffsetDateTime>,
    used_at: Option<OffsetDateTime>,
}

impl From<&RunNonce> for RunNonceRow {
    fn from(nonce: &RunNonce) -> Self {
        Self {
            execution_id: nonce.execution.as_uuid(),
            organization_id: nonce.organization.as_uuid(),
            attempt: i64::from(nonce.attempt),
            user_id: nonce.user.as_uuid(),
            scopes: scope_names(nonce.scopes),
            hash: nonce.hash.0.to_vec(),
            expires_at: nonce.expires_at,
            key_expires_at: nonce.key_expires_at,
            used_at: nonce.used_at,
        }
    }
}

impl TryFrom<RunNonceRow> for RunNonce {
    type Error = PortError;

    fn try_from(row: RunNonceRow) -> Result<Self, PortError> {
        let broken = |column| corrupt("run_nonce", column, row.execution_id);
        Ok(Self {
            organization: OrganizationId::new(row.organization_id),
            execution: ExecutionId::new(row.execution_id),
            attempt: u32::try_from(row.attempt).map_err(|_| broken("attempt"))?,
            user: UserId::new(row.user_id),
            scopes: read_scopes(&row.scopes).ok_or_else(|| broken("scopes"))?,
            hash: RunNonceHash(row.hash.try_into().map_err(|_| broken("hash"))?),
            expires_at: row.expires_at,
            key_expires_at: row.key_expires_at,
            used_at: row.used_at,
        })
    }
}

/// Stores a nonce in place of an earlier one of the run.
pub(crate) async fn store(connection: &mut Connection, nonce: &RunNonce) -> Result<(), Fault> {
    diesel::insert_into(run_nonce::table)
        .values(RunNonceRow::from(nonce))
        .on_conflict(run_nonce::execution_id)
        .do_update()
        .set((
            run_nonce::attempt.eq(excluded(run_nonce::attempt)),
            run_nonce::user_id.eq(excluded(run_nonce::user_id)),
            run_nonce::scopes.eq(excluded(run_nonce::scopes)),
            run_nonce::hash.eq(excluded(run_nonce::hash)),
            run_nonce::expires_at.eq(excluded(run_nonce::expires_at)),
            run_nonce::key_expires_at.eq(excluded(run_nonce::key_expires_at)),
            run_nonce::used_at.eq(excluded(run_nonce::used_at)),
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("run_nonce_user_id_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
    Ok(())
}

/// Finds the nonce of an attempt.
pub(crate) async fn find(
    connection: &mut Connection,
    execution: ExecutionId,
    attempt: u32,
) -> Result<Option<RunNonce>, Fault> {
    let row = run_nonce::table
        .filter(run_nonce::execution_id.eq(execution.as_uuid()))
        .filter(run_nonce::attempt.eq(i64::from(attempt)))
        .select(RunNonceRow::as_select())
        .first(connection)
        .await
        .optional()?;
    Ok(row.map(RunNonce::try_from).transpose()?)
}

/// Uses the nonce of a claim and stores the key, or revokes the run's keys if it was used before.
pub(crate) async fn redeem(
    connection: &mut Connection,
    claim: WorkClaim,
    key: &ApiKey,
) -> Result<NonceUse, Fault> {
    let of_claim = run_nonce::table
        .filter(run_nonce::execution_id.eq(claim.work.as_uuid()))
        .filter(run_nonce::organization_id.eq(claim.organization.as_uuid()))
        .filter(run_nonce::attempt.eq(i64::from(claim.attempt)));
    // Racing calls wait here for each other.
    let used_at: Option<Option<OffsetDateTime>> = of_claim
        .select(run_nonce::used_at)
        .for_update()
        .first(connection)
        .await
        .optional()?;
    match used_at {
        None => Ok(NonceUse::RunLost),
        Some(None) => {
            diesel::update(of_claim)
                // In the transaction that stores the key: no nonce is marked as used without a key.
                .set(run_nonce::used_at.eq(Some(key.created_at)))
                .execute(connection)
                .await?;
            key_rows::insert(connection, key).await?;
            Ok(NonceUse::First)
        }
        // Two callers have the nonce, and nothing says which of them is the run: the first key is revoked.
        Some(Some(_)) => {
            let executions = [claim.work.as_uuid()];
            let (organization, now) = (claim.organization, key.created_at);
            rows::revoke_keys(connection, organization, &executions, now).await?;
            Ok(NonceUse::Repeated)
        }
    }
}
