//! Effects that happen once per request, in one transaction with the answer that is kept.

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
use labdata_ports::{
    PortError,
    idempotency::{Idempotency, IdempotentRequest, KEPT_FOR, Once, OnceError, StoredResponse},
};
use time::OffsetDateTime;

use crate::database::{
    errors::port_error,
    pool::{Connection, Database},
    transaction,
};

/// Idempotency keys in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgIdempotency {
    database: Database,
}

impl PgIdempotency {
    /// The keys in that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[derive(QueryableByName)]
struct CachedStatement {
    #[diesel(sql_type = Binary)]
    body_sha256: Vec<u8>,
    #[diesel(sql_type = SmallInt)]
    status: i16,
    #[diesel(sql_type = Text)]
    content_type: String,
    #[diesel(sql_type = Binary)]
    answer: Vec<u8>,
}

#[async_trait(?Send)]
impl Idempotency for PgIdempotency {
    async fn once(
        &self,
        request: &IdempotentRequest,
        effect: LocalBoxFuture<'_, Option<StoredResponse>>,
    ) -> Result<Once, OnceError> {
        let mut connection = self.database.connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        match answered(&mut connection, request).await {
            Ok(None) => self.run(connection, request, effect).await,
            Ok(Some(kept)) => {
                transaction::rollback(&mut connection).await;
                if kept.body_sha256 != request.body_sha256 {
                    return Err(OnceError::OtherBody);
                }
                Ok(Once::Replayed(StoredResponse {
                    status: u16::try_from(kept.status).unwrap_or(200),
                    content_type: kept.content_type,
                    body: kept.answer,
                }))
            }
            Err(error) => {
                transaction::rollback(&mut connection).await;
                Err(port_error(error).into())
            }
        }
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
            .bind::<Timestamptz, _>(now - KEPT_FOR)
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
        let (answer, mut connection) = self.database.unit_of_work(connection, effect).await;
        let Some(answer) = answer else {
            transaction::rollback(&mut connection).await;
            return Ok(Once::Ran);
        };
        let kept = match keep(&mut connection, request, &answer).await {
            Ok(()) => transaction::commit(&mut connection).await,
            Err(error) => {
                transaction::rollback(&mut connection).await;
                Err(error)
            }
        };
        kept.map_err(port_error)?;
        Ok(Once::Ran)
    }
}

/// Waits for the same request where it is running, and looks up its answer then.
async fn answered(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
) -> Result<Option<CachedStatement>, diesel::result::Error> {
    diesel::sql_query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind::<Text, _>(format!(
            "idempotency {} {} {}",
            request.api_key, request.operation, request.key
        ))
        .execute(connection)
        .await?;
    // A separate statement, so that it sees what was committed while it waited for the lock.
    let found: Vec<CachedStatement> = diesel::sql_query(
        "SELECT body_sha256, status, content_type, answer FROM labdata.idempotency_key \
         WHERE api_key_id = $1 AND operation = $2 AND key = $3 AND created_at > $4",
    )
    .bind::<SqlUuid, _>(request.api_key.as_uuid())
    .bind::<Text, _>(&request.operation)
    .bind::<Text, _>(&request.key)
    .bind::<Timestamptz, _>(request.now - KEPT_FOR)
    .load(connection)
    .await?;
    Ok(found.into_iter().next())
}

/// Keeps an answer, in the place of one that has expired.
async fn keep(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
    answer: &StoredResponse,
) -> Result<(), diesel::result::Error> {
    diesel::sql_query(
        "INSERT INTO labdata.idempotency_key \
         (organization_id, api_key_id, operation, key, body_sha256, status, content_type, answer, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (api_key_id, operation, key) DO UPDATE SET body_sha256 = excluded.body_sha256, \
         status = excluded.status, content_type = excluded.content_type, answer = excluded.answer, \
         created_at = excluded.created_at",
    )
    .bind::<SqlUuid, _>(request.organization.as_uuid())
    .bind::<SqlUuid, _>(request.api_key.as_uuid())
    .bind::<Text, _>(&request.operation)
    .bind::<Text, _>(&request.key)
    .bind::<Binary, _>(request.body_sha256.as_slice())
    .bind::<SmallInt, _>(i16::try_from(answer.status).unwrap_or(200))
    .bind::<Text, _>(&answer.content_type)
    .bind::<Binary, _>(&answer.body)
    .bind::<Timestamptz, _>(request.now)
    .execute(connection)
    .await?;
    Ok(())
}
