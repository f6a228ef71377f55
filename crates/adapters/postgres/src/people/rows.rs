//! Rows of API keys.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    catalog::TableIdentity,
    ids::{ApiKeyId, ExecutionId, OrganizationId, UserId},
    people::{
        ApiKey, ApiKeyHash, FoundKey,
        role::Role,
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

diesel::define_sql_function! {
    /// Names of the groups of a user, sorted.
    #[sql_name = "labdata.group_names"]
    fn group_names(organization: diesel::sql_types::Uuid, member: diesel::sql_types::Uuid) -> diesel::sql_types::Array<diesel::sql_types::Text>;
}

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
    tables: Option<Vec<String>>,
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
            tables: row.tables.map(|tables| {
                let tables = tables.iter();
                tables.map(|table| TableIdentity::parse(table)).collect()
            }),
            execution: row.execution_id.map(ExecutionId::new),
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        })
    }
}

/// Facts of a key's user that decide about the key: since when the user is disabled, the role, the groups.
pub(super) type HolderRow = (Option<OffsetDateTime>, String, Vec<String>);

/// A key as found, with what of its user decides about it.
pub(super) fn found_key(
    key: ApiKeyRow,
    (user_disabled_at, role, groups): HolderRow,
) -> Result<FoundKey, PortError> {
    let key = ApiKey::try_from(key)?;
    Ok(FoundKey {
        role: read_role(&role, key.user)?,
        key,
        user_disabled_at,
        groups,
    })
}

/// Reads the stored role of a user.
pub(crate) fn read_role(name: &str, user: UserId) -> Result<Role, PortError> {
    Role::from_name(name).ok_or_else(|| corrupt("app_user", "role", user))
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
            api_key::tables.eq(key.tables.as_ref().map(|tables| {
                let tables = tables.iter();
                tables.map(ToString::to_string).collect::<Vec<_>>()
            })),
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
