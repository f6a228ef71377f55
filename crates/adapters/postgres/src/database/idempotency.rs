//! Effects that happen once per request, in one transaction with their stored response.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::sql_types::{BigInt, Timestamptz};
use diesel_async::RunQueryDsl;
use labdata_domain::idempotency::{StoredResponse, expired_at};
use labdata_ports::{
    PortError,
    idempotency::{Begun, Idempotency, IdempotentRequest, OnceError},
};
use time::OffsetDateTime;

use super::{
    duplicates::Duplicates,
    errors::port_error,
    stored_responses::{locked_response, stored},
    transaction,
    units::{BindRepositories, PgUnit},
};

/// Idempotency keys in PostgreSQL.
#[derive(Clone)]
pub struct PgIdempotency {
    store: Arc<dyn BindRepositories>,
    duplicates: Arc<Duplicates>,
}

impl PgIdempotency {
    /// The keys in the database of that store, whose repositories take part in units of work.
    pub(crate) fn new(store: Arc<dyn BindRepositories>) -> Self {
        Self {
            store,
            duplicates: Arc::default(),
        }
    }
}

#[async_trait]
impl Idempotency for PgIdempotency {
    async fn begin(&self, request: &IdempotentRequest) -> Result<Begun, OnceError> {
        // Before the connection: duplicates that wait must not use up the organization's share.
        let turn = self.duplicates.wait(request).await?;
        let database = self.store.database();
        let mut connection = database.of(request.organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        let replay = match locked_response(&mut connection, request).await {
            Ok(None) => Ok(None),
            Ok(Some(completed)) => completed
                .replay(&request.fingerprint, request.now)
                .map_err(OnceError::from),
            Err(error) => Err(error.into()),
        };
        // Before the early returns below: the pool closes a connection that is dropped in a transaction.
        if !matches!(replay, Ok(None)) {
            transaction::rollback(&mut connection).await;
        }
        if let Some(response) = replay? {
            return Ok(Begun::Replayed(response));
        }
        // Its turn ends with the unit: until then duplicates on this server wait without a connection.
        let unit = PgUnit::of_request(&self.store, connection, request.clone(), turn);
        Ok(Begun::New(Box::new(unit)))
    }

    async fn find_response(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<StoredResponse>, OnceError> {
        let database = self.store.database().of(request.organization);
        let mut connection = database.connection().await?;
        // Without the lock: this only spares work, and `begin` looks again under it.
        Ok(match stored(&mut connection, request).await? {
            Some(completed) => completed.replay(&request.fingerprint, request.now)?,
            None => None,
        })
    }

    async fn forget_expired(&self, now: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut connection = self.store.database().connection().await?;
        // A subquery, because DELETE has no LIMIT; SKIP LOCKED, because every server runs this.
        let forgotten = diesel::sql_query(
            "DELETE FROM labdata.idempotency_key WHERE (api_key_id, operation, key) IN \
             (SELECT api_key_id, operation, key FROM labdata.idempotency_key WHERE created_at <= $1 \
             ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        )
        .bind::<Timestamptz, _>(expired_at(now))
        .bind::<BigInt, _>(i64::from(limit))
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        Ok(u64::try_from(forgotten).unwrap_or(u64::MAX))
    }
}
