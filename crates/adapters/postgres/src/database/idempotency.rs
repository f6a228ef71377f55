//! Effects that happen once per request, in one transaction with their stored response.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::idempotency::{CompletedRequest, StoredResponse, expired_at};
use labdata_ports::{
    PortError,
    idempotency::{Begun, Idempotency, IdempotentRequest, OnceError},
};
use time::OffsetDateTime;

use crate::{
    database::{
        duplicates::Duplicates,
        errors::{corrupt, port_error},
        transaction,
        units::PgUnit,
    },
    store::PgStore,
};

/// Idempotency keys in PostgreSQL.
#[derive(Clone)]
pub struct PgIdempotency {
    store: PgStore,
    duplicates: Arc<Duplicates>,
}

impl PgIdempotency {
    /// The keys in the database of that store, whose repositories take part in units of work.
    #[must_use]
    pub fn new(store: PgStore) -> Self {
        Self {
            store,
            duplicates: Arc::default(),
        }
    }
}

#[derive(QueryableByName)]
struct StoredResponseRow {
    #[diesel(sql_type = Binary)]
    body_sha256: Vec<u8>,
    #[diesel(sql_type = SmallInt)]
    status: i16,
    #[diesel(sql_type = Text)]
    content_type: String,
    #[diesel(sql_type = Binary)]
    response: Vec<u8>,
    #[diesel(sql_type = Timestamptz)]
    created_at: OffsetDateTime,
}

impl StoredResponseRow {
    fn read(self, key: &str) -> Result<CompletedRequest, PortError> {
        let corrupt = |column| corrupt("idempotency_key", column, key);
        Ok(CompletedRequest {
            body_sha256: self
                .body_sha256
                .try_into()
                .map_err(|_| corrupt("body_sha256"))?,
            answered_at: self.created_at,
            response: StoredResponse {
                status: u16::try_from(self.status).map_err(|_| corrupt("status"))?,
                content_type: self.content_type,
                body: self.response,
            },
        })
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
                .replay(&request.body_sha256, request.now)
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
            Some(completed) => completed.replay(&request.body_sha256, request.now)?,
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

/// Waits while the same request runs on another server, and then loads its response.
async fn locked_response(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
) -> Result<Option<CompletedRequest>, PortError> {
    // Advisory locks have 64-bit keys: two requests with the same hash only wait for each other.
    diesel::sql_query("SELECT pg_advisory_xact_lock(labdata.lock_key($1))")
        .bind::<Text, _>(format!(
            "idempotency {} {} {}",
            request.api_key, request.operation, request.key
        ))
        .execute(connection)
        .await
        .map_err(port_error)?;
    // A separate statement, so that it sees what was committed while it waited for the lock.
    stored(connection, request).await
}

/// Loads the response to the same request.
async fn stored(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
) -> Result<Option<CompletedRequest>, PortError> {
    let found: Vec<StoredResponseRow> = diesel::sql_query(
        "SELECT body_sha256, status, content_type, response, created_at \
         FROM labdata.idempotency_key WHERE api_key_id = $1 AND operation = $2 AND key = $3",
    )
    .bind::<SqlUuid, _>(request.api_key.as_uuid())
    .bind::<Text, _>(&request.operation)
    .bind::<Text, _>(&request.key)
    .load(connection)
    .await
    .map_err(port_error)?;
    let found = found.into_iter().next();
    found.map(|row| row.read(&request.key)).transpose()
}

/// Stores a response; it replaces an expired one.
pub(super) async fn store(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
    response: &StoredResponse,
) -> Result<(), diesel::result::Error> {
    diesel::sql_query(
        "INSERT INTO labdata.idempotency_key \
         (organization_id, api_key_id, operation, key, body_sha256, status, content_type, response, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (api_key_id, operation, key) DO UPDATE SET body_sha256 = excluded.body_sha256, \
         status = excluded.status, content_type = excluded.content_type, response = excluded.response, \
         created_at = excluded.created_at",
    )
    .bind::<SqlUuid, _>(request.organization.as_uuid())
    .bind::<SqlUuid, _>(request.api_key.as_uuid())
    .bind::<Text, _>(&request.operation)
    .bind::<Text, _>(&request.key)
    .bind::<Binary, _>(request.body_sha256.as_slice())
    .bind::<SmallInt, _>(i16::try_from(response.status).unwrap_or(200))
    .bind::<Text, _>(&response.content_type)
    .bind::<Binary, _>(&response.body)
    .bind::<Timestamptz, _>(request.now)
    .execute(connection)
    .await?;
    Ok(())
}
