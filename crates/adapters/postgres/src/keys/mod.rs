//! API keys.

pub(crate) mod tenancy;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{Array, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    keys::{
        ApiKey, ApiKeyHash,
        run_nonce::RunNonce,
        scope::{Scope, Scopes},
    },
};
use labdata_ports::{PortError, keys::ApiKeyRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt, port_error, retried},
        pool::{Connection, Database},
    },
    runs::nonces,
    schema::api_key,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_key)]
struct ApiKeyRow {
    id: Uuid,
    organization_id: Uuid,
    user_id: Uuid,
    name: String,
    prefix: String,
    hash: Vec<u8>,
    scopes: Vec<String>,
    execution_id: Option<Uuid>,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    last_used_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
}

impl TryFrom<ApiKeyRow> for ApiKey {
    type Error = PortError;

    fn try_from(row: ApiKeyRow) -> Result<Self, PortError> {
        let hash: [u8; 32] = row
            .hash
            .try_into()
            .map_err(|_| corrupt("api_key", "hash", row.id))?;
        let scopes: Option<Scopes> = row
            .scopes
            .iter()
            .map(|name| Scope::from_name(name))
            .collect();
        Ok(Self {
            id: ApiKeyId::new(row.id),
            organization: OrganizationId::new(row.organization_id),
            user: UserId::new(row.user_id),
            name: row.name,
            prefix: row.prefix,
            hash: ApiKeyHash(hash),
            scopes: scopes.ok_or_else(|| corrupt("api_key", "scopes", row.id))?,
            execution: row.execution_id.map(ExecutionId::new),
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        })
    }
}

/// API keys in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgApiKeyRepository {
    database: Database,
}

impl PgApiKeyRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    async fn touch_once(&self, ids: &[Uuid], times: &[OffsetDateTime]) -> Result<(), Fault> {
        let mut connection = self.database.connection().await?;
        // Rows are locked in the order of their ids, so that racing calls wait for each other
        // instead of deadlocking.
        diesel::sql_query(
            "WITH used AS ( \
                 SELECT id, max(at) AS at FROM unnest($1, $2) AS u (id, at) GROUP BY id \
             ), locked AS ( \
                 SELECT k.id, used.at FROM labdata.api_key k JOIN used USING (id) \
                 WHERE k.last_used_at IS NULL OR k.last_used_at < used.at \
                 ORDER BY k.id FOR UPDATE OF k \
             ) \
             UPDATE labdata.api_key k SET last_used_at = locked.at FROM locked WHERE k.id = locked.id",
        )
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<Timestamptz>, _>(times)
        .execute(&mut connection)
        .await?;
        Ok(())
    }
}

/// Stores a new key.
pub(crate) async fn insert(connection: &mut Connection, key: &ApiKey) -> Result<(), Fault> {
    let scopes: Vec<&str> = key.scopes.iter().map(Scope::as_str).collect();
    diesel::insert_into(api_key::table)
        .values((
            api_key::id.eq(key.id.as_uuid()),
            api_key::organization_id.eq(key.organization.as_uuid()),
            api_key::user_id.eq(key.user.as_uuid()),
            api_key::name.eq(&key.name),
            api_key::prefix.eq(&key.prefix),
            api_key::hash.eq(key.hash.0.as_slice()),
            api_key::scopes.eq(scopes),
            api_key::execution_id.eq(key.execution.map(ExecutionId::as_uuid)),
            api_key::created_at.eq(key.created_at),
            api_key::expires_at.eq(key.expires_at),
            api_key::last_used_at.eq(key.last_used_at),
            api_key::revoked_at.eq(key.revoked_at),
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error)
                .on_violation("api_key_prefix_key", || {
                    PortError::Conflict(key.prefix_taken())
                })
                .on_violation("api_key_user_id_fkey", || PortError::NotFound("user"))
                .on_violation("api_key_execution_id_fkey", || {
                    PortError::NotFound("execution")
                })
        })?;
    Ok(())
}

#[async_trait]
impl ApiKeyRepository for PgApiKeyRepository {
    async fn add(&self, key: &ApiKey) -> Result<(), PortError> {
        let mut connection = self.database.connection().await?;
        Ok(insert(&mut connection, key).await?)
    }

    async fn find_by_prefix(&self, prefix: &str) -> Result<Option<ApiKey>, PortError> {
        let mut connection = self.database.connection().await?;
        let row = api_key::table
            .filter(api_key::prefix.eq(prefix))
            .select(ApiKeyRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(ApiKey::try_from).transpose()
    }

    async fn find_run_nonce(
        &self,
        execution: ExecutionId,
        attempt: u32,
    ) -> Result<Option<RunNonce>, PortError> {
        let mut connection = self.database.connection().await?;
        Ok(nonces::find(&mut connection, execution, attempt).await?)
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<ApiKey>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let rows: Vec<ApiKeyRow> = api_key::table
            .filter(api_key::organization_id.eq(organization.as_uuid()))
            .filter(api_key::execution_id.is_null())
            .order((api_key::created_at.desc(), api_key::id.desc()))
            .select(ApiKeyRow::as_select())
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        rows.into_iter().map(ApiKey::try_from).collect()
    }

    async fn revoke(
        &self,
        organization: OrganizationId,
        id: ApiKeyId,
        at: OffsetDateTime,
    ) -> Result<(), PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let known = diesel::sql_query(
            "UPDATE labdata.api_key SET revoked_at = coalesce(revoked_at, $3) \
             WHERE id = $1 AND organization_id = $2",
        )
        .bind::<SqlUuid, _>(id.as_uuid())
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Timestamptz, _>(at)
        .execute(&mut connection)
        .await
        .map_err(port_error)?;
        if known == 0 {
            Err(PortError::NotFound("API key"))
        } else {
            Ok(())
        }
    }

    async fn touch(&self, uses: &[(ApiKeyId, OffsetDateTime)]) -> Result<(), PortError> {
        if uses.is_empty() {
            return Ok(());
        }
        let (ids, times): (Vec<Uuid>, Vec<OffsetDateTime>) =
            uses.iter().map(|(id, at)| (id.as_uuid(), *at)).unzip();
        Ok(retried!(self.touch_once(&ids, &times))?)
    }
}
