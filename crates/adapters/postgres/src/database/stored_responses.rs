//! Stored responses of idempotent requests.

use diesel::{
    QueryableByName,
    sql_types::{Array, Binary, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::TableIdentity,
    idempotency::{CompletedRequest, Fingerprint, StoredResponse},
};
use labdata_ports::{PortError, idempotency::IdempotentRequest};
use time::OffsetDateTime;

use super::errors::{corrupt, port_error};

#[derive(QueryableByName)]
struct StoredResponseRow {
    #[diesel(sql_type = Binary)]
    body_sha256: Vec<u8>,
    #[diesel(sql_type = Binary)]
    rights_sha256: Vec<u8>,
    #[diesel(sql_type = SmallInt)]
    status: i16,
    #[diesel(sql_type = Text)]
    content_type: String,
    #[diesel(sql_type = Binary)]
    response: Vec<u8>,
    #[diesel(sql_type = Array<Text>)]
    tables: Vec<String>,
    #[diesel(sql_type = Timestamptz)]
    created_at: OffsetDateTime,
}

impl StoredResponseRow {
    fn read(self, key: &str) -> Result<CompletedRequest, PortError> {
        let corrupt = |column| corrupt("idempotency_key", column, key);
        Ok(CompletedRequest {
            fingerprint: Fingerprint {
                body: self
                    .body_sha256
                    .try_into()
                    .map_err(|_| corrupt("body_sha256"))?,
                rights: self
                    .rights_sha256
                    .try_into()
                    .map_err(|_| corrupt("rights_sha256"))?,
            },
            answered_at: self.created_at,
            response: StoredResponse {
                status: u16::try_from(self.status).map_err(|_| corrupt("status"))?,
                content_type: self.content_type,
                body: self.response,
                tables: self
                    .tables
                    .iter()
                    .map(|it| TableIdentity::parse(it))
                    .collect(),
            },
        })
    }
}

/// Waits while the same request runs on another server, and then loads its response.
pub(super) async fn locked_response(
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
pub(super) async fn stored(
    connection: &mut AsyncPgConnection,
    request: &IdempotentRequest,
) -> Result<Option<CompletedRequest>, PortError> {
    let found: Vec<StoredResponseRow> = diesel::sql_query(
        // The hash of the body too: the same key with another body is a mistake of the client, not a retry.
        "SELECT body_sha256, coalesce(rights_sha256, $4) AS rights_sha256, status, content_type, response, tables, \
         created_at FROM labdata.idempotency_key WHERE api_key_id = $1 AND operation = $2 AND key = $3",
    )
    .bind::<SqlUuid, _>(request.api_key.as_uuid())
    .bind::<Text, _>(&request.operation)
    .bind::<Text, _>(&request.key)
    .bind::<Binary, _>(request.fingerprint.rights.as_slice())
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
    let tables: Vec<String> = response.tables.iter().map(ToString::to_string).collect();
    diesel::sql_query(
        "INSERT INTO labdata.idempotency_key \
         (organization_id, api_key_id, operation, key, body_sha256, rights_sha256, status, content_type, response, tables, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (api_key_id, operation, key) DO UPDATE SET body_sha256 = excluded.body_sha256, \
         rights_sha256 = excluded.rights_sha256, \
         status = excluded.status, content_type = excluded.content_type, response = excluded.response, \
         tables = excluded.tables, \
         created_at = excluded.created_at",
    )
    .bind::<SqlUuid, _>(request.organization.as_uuid())
    .bind::<SqlUuid, _>(request.api_key.as_uuid())
    .bind::<Text, _>(&request.operation)
    .bind::<Text, _>(&request.key)
    .bind::<Binary, _>(request.fingerprint.body.as_slice())
    .bind::<Binary, _>(request.fingerprint.rights.as_slice())
    // A status has three digits, so it always fits.
    .bind::<SmallInt, _>(i16::try_from(response.status).unwrap_or(200))
    .bind::<Text, _>(&response.content_type)
    .bind::<Binary, _>(&response.body)
    .bind::<Array<Text>, _>(tables)
    .bind::<Timestamptz, _>(request.now)
    .execute(connection)
    .await?;
    Ok(())
}
