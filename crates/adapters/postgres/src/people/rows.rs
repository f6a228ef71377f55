//! Rows of API keys.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{
        ApiKey, ApiKeyHash,
        scope::{Scope, Scopes},
    },
    refusal::Resource,
};
use labdata_ports::PortError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::{
        errors::{Fault, corrupt},
        pool::Connection,
    },
    schema::api_key,
};

/// An API key as it is stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = api_key)]
pub(super) struct ApiKeyRow {
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
        Ok(Self {
            id: ApiKeyId::new(row.id),
            organization: OrganizationId::new(row.organization_id),
            user: UserId::new(row.user_id),
            name: row.name,
            prefix: row.prefix,
            hash: ApiKeyHash(hash),
            scopes: read_scopes(&row.scopes).ok_or_else(|| corrupt("api_key", "scopes", row.id))?,
            execution: row.execution_id.map(ExecutionId::new),
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        })
    }
}

/// Names of scopes, as columns store them.
pub(crate) fn scope_names(scopes: Scopes) -> Vec<String> {
    scopes.iter().map(|scope| scope.to_string()).collect()
}

/// Reads stored scopes; `None` if one is unknown.
pub(crate) fn read_scopes(names: &[String]) -> Option<Scopes> {
    names.iter().map(|name| Scope::from_name(name)).collect()
}

/// Stores a new key.
pub(crate) async fn insert(connection: &mut Connection, key: &ApiKey) -> Result<(), Fault> {
    diesel::insert_into(api_key::table)
        .values((
            api_key::id.eq(key.id.as_uuid()),
            api_key::organization_id.eq(key.organization.as_uuid()),
            api_key::user_id.eq(key.user.as_uuid()),
            api_key::name.eq(&key.name),
            api_key::prefix.eq(&key.prefix),
            api_key::hash.eq(key.hash.0.as_slice()),
            api_key::scopes.eq(scope_names(key.scopes)),
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
                .on_violation("api_key_user_id_fkey", || {
                    PortError::NotFound(Resource::User)
                })
                .on_violation("api_key_execution_id_fkey", || {
                    PortError::NotFound(Resource::Execution)
                })
        })?;
    Ok(())
}
