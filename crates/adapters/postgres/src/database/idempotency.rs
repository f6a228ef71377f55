//! Effects that happen once per request, in one transaction with their stored response.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures::{
    FutureExt,
    future::{BoxFuture, LocalBoxFuture},
};
use labdata_domain::idempotency::{CompletedRequest, StoredResponse, expired_at};
use labdata_ports::{
    PortError,
    idempotency::{Idempotency, IdempotentRequest, Once, OnceError},
};
use time::OffsetDateTime;

use crate::database::{
    duplicates::Duplicates,
    errors::{corrupt, port_error},
    pool::{Connection, Database},
    transaction,
};

/// Idempotency keys in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgIdempotency {
    database: Database,
    duplicates: Arc<Duplicates>,
}

impl PgIdempotency {
    /// The keys in that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self {
            database,
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

#[async_trait(?Send)]
impl Idempotency for PgIdempotency {
    async fn once(
        &self,
        request: &IdempotentRequest,
        effect: LocalBoxFuture<'_, Option<StoredResponse>>,
    ) -> Result<Once, OnceError> {
        let _turn = self.duplicates.wait(request).await?;
        let database = self.database.of(request.organization);
        let mut connection = database.connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        let replay = match answered(&mut connection, request).await {
            Ok(None) => Ok(None),
            Ok(Some(answered)) => answered
                .replay(&request.body_sha256, request.now)
                .map_err(OnceError::from),
            Err(error) => Err(error.into()),
        };
        match replay {
            Ok(None) => self.run(connection, request, effect).await,
            Ok(Some(response)) => {
                transaction::rollback(&mut connection).await;
                Ok(Once::Replayed(response))
            }
            Err(error) => {
                transaction::rollback(&mut connection).await;
                Err(error)
            }
        }
    }

    async fn answered(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<StoredResponse>, OnceError> {
        let database = self.database.of(request.organization);
        let mut connection = database.connection().await?;
        Ok(match stored(&mut connection, request).await? {
            Some(answered) => answered.replay(&request.body_sha256, request.now)?,
            None => None,
        })
    }

    fn forget_expired(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> BoxFuture<'_, Result<u64, PortError>> {
        async move {
            let mut connection = self.database.connection().await?;
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
        .boxed()
    }
}

impl PgIdempotency {
    async fn run(
        &self,
        connection: Connection,
        request: &IdempotentRequest,
        effect: LocalBoxFuture<'_, Option<StoredResponse>>,
    ) -> Result<Once, OnceError> {
        let (reply, mut connection) = self.database.unit_of_work(connection, effect).await;
        let Some(reply) = reply else {
            transaction::rollback(&mut connection).await;
            return Ok(Once::Ran);
        };
        let stored = match keep(&mut connection, request, &reply).await {
            Ok(()) => transaction::commit(&mut connection).await,
            Err(error) => {
                transaction::rollback(&mut connection).await;
                Err(error)
            }
        };
        stored.map_err(port_error)?;
        Ok(Once::Ran)
    }
}

/// Waits while the same request is running elsewhere, and then loads what was answered.
async fn answered(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
) -> Result<Option<CompletedRequest>, PortError> {
    diesel::sql_query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
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

/// Loads what was answered to the same request.
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
async fn keep(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
    reply: &StoredResponse,
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
    .bind::<SmallInt, _>(i16::try_from(reply.status).unwrap_or(200))
    .bind::<Text, _>(&reply.content_type)
    .bind::<Binary, _>(&reply.body)
    .bind::<Timestamptz, _>(request.now)
    .execute(connection)
    .await?;
    Ok(())
}
