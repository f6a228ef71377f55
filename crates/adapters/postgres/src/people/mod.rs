//! API keys.

pub(crate) mod groups;
pub(crate) mod invitations;
pub(crate) mod oidc;
pub(crate) mod rows;
pub(crate) mod sessions;
pub(crate) mod tenancy;

use async_trait::async_trait;
use diesel::{
    prelude::*,
    sql_types::{Array, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId},
    people::{ApiKey, FoundKey, run_nonce::RunNonce},
    refusal::Resource,
};
use labdata_ports::{PortError, people::ApiKeyRepository};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, port_error, retried},
        pool::Database,
    },
    people::rows::{ApiKeyRow, HolderRow, found_key, group_names, insert},
    schema::{api_key, app_user},
    work::nonces,
};

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

/// A key, and what of its user decides about it.
type FoundKeyRow = (ApiKeyRow, HolderRow);

fn found((key, holder): FoundKeyRow) -> Result<FoundKey, PortError> {
    found_key(key, holder)
}

/// Columns of a key's user that decide about the key, in the order of [`HolderRow`].
macro_rules! holder {
    () => {
        (
            app_user::disabled_at,
            app_user::role,
            group_names(app_user::organization_id, app_user::id),
        )
    };
}
pub(crate) use holder;

#[async_trait]
impl ApiKeyRepository for PgApiKeyRepository {
    async fn add(&self, key: &ApiKey) -> Result<(), PortError> {
        let mut connection = self.database.connection().await?;
        Ok(insert(&mut connection, key).await?)
    }

    async fn find_by_prefix(&self, prefix: &str) -> Result<Option<FoundKey>, PortError> {
        let mut connection = self.database.connection().await?;
        // Of all organizations: a request brings a key alone, which tells its organization.
        let row: Option<FoundKeyRow> = api_key::table
            // With the user in one statement: a disabled user's keys are refused at once.
            .inner_join(app_user::table.on(app_user::id.eq(api_key::user_id)))
            .filter(api_key::prefix.eq(prefix))
            .select((ApiKeyRow::as_select(), holder!()))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.map(found).transpose()
    }

    async fn get(&self, organization: OrganizationId, id: ApiKeyId) -> Result<FoundKey, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<FoundKeyRow> = api_key::table
            .inner_join(app_user::table.on(app_user::id.eq(api_key::user_id)))
            .filter(api_key::id.eq(id.as_uuid()))
            .filter(api_key::organization_id.eq(organization.as_uuid()))
            .select((ApiKeyRow::as_select(), holder!()))
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        found(row.ok_or(PortError::NotFound(Resource::ApiKey))?)
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
            // Keys of runs come and go with the runs; no one manages them.
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
            // The first revocation's time stands: repeating it changes nothing and succeeds.
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
            Err(PortError::NotFound(Resource::ApiKey))
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
