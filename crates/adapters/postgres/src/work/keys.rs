//! Keys of runs.

use async_trait::async_trait;
use labdata_domain::{
    people::{ApiKey, run_nonce::RunNonce},
    work::WorkId,
};
use labdata_ports::{
    PortError,
    work::{NonceUse, RunKeys, WorkClaim},
};

use super::{nonces, rows::holds};
use crate::{
    database::{
        errors::{Fault, transacted},
        pool::{Connection, Database},
    },
    people::rows as key_rows,
};

/// Keys of runs in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgRunKeys {
    database: Database,
}

impl PgRunKeys {
    /// The keys in that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

async fn issue(connection: &mut Connection, claim: WorkClaim, key: &ApiKey) -> Result<bool, Fault> {
    // Locked until the key is stored: the lease cannot end in between, and its end revokes the key.
    if !holds(connection, claim).await? {
        return Ok(false);
    }
    key_rows::insert(connection, key).await?;
    Ok(true)
}

async fn store_nonce(connection: &mut Connection, nonce: &RunNonce) -> Result<bool, Fault> {
    let claim = WorkClaim {
        organization: nonce.organization,
        work: WorkId::Execution(nonce.execution),
        attempt: nonce.attempt,
    };
    // As for a key: an attempt that lost its work must not leave a nonce that its successor's replaced.
    if !holds(connection, claim).await? {
        return Ok(false);
    }
    nonces::store(connection, nonce).await?;
    Ok(true)
}

async fn redeem_nonce(
    connection: &mut Connection,
    claim: WorkClaim,
    key: &ApiKey,
) -> Result<NonceUse, Fault> {
    if !holds(connection, claim).await? {
        return Ok(NonceUse::RunLost);
    }
    nonces::redeem(connection, claim, key).await
}

#[async_trait]
impl RunKeys for PgRunKeys {
    async fn issue(&self, claim: WorkClaim, key: &ApiKey) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => issue(connection, claim, key))?)
    }

    async fn store_nonce(&self, nonce: &RunNonce) -> Result<bool, PortError> {
        Ok(transacted!(self.database, connection => store_nonce(connection, nonce))?)
    }

    async fn redeem_nonce(&self, claim: WorkClaim, key: &ApiKey) -> Result<NonceUse, PortError> {
        Ok(transacted!(self.database, connection => redeem_nonce(connection, claim, key))?)
    }
}
