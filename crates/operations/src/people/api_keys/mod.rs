//! `/api/v1/api-keys`

use labdata_application::people::named_key::NamedKey;
use labdata_domain::{
    ids::{ApiKeyId, UserId},
    people::scope::{Scope, Scopes},
};
use labdata_request_body::{Timestamp, names, output};
use serde_json::json;

use crate::Operation;

pub mod create;
pub mod list;
pub mod revoke;

names! {
    /// Scope of an API key; none implies another.
    pub ApiKeyScope = Scope::ALL.map(Scope::as_str);
}

output! {
    /// An API key, without its secret.
    #[derive(Clone, Debug)]
    pub struct ApiKeyView as "ApiKey" from named: NamedKey {
        /// Its id.
        id: ApiKeyId = named.key.id,
        /// The user to whom it belongs.
        user_id: UserId = named.key.user,
        /// Its name.
        name: String = named.key.name,
        /// The public part of the key.
        #[example = "k3v9q2mx"]
        prefix: String = named.key.prefix,
        /// Its scopes.
        #[example = json!(["read", "write"])]
        scopes: Vec<ApiKeyScope> = scope_names(named.key.scopes),
        /// Names of the only tables that it concerns; null for all.
        tables: Option<Vec<String>> = named.tables,
        created_at: Timestamp = named.key.created_at.into(),
        /// From when on it is refused; null for never.
        expires_at: Option<Timestamp> = named.key.expires_at.map(Into::into),
        /// About when it was last used.
        last_used_at: Option<Timestamp> = named.key.last_used_at.map(Into::into),
        /// When it was revoked; null while it is valid.
        revoked_at: Option<Timestamp> = named.key.revoked_at.map(Into::into),
    }
}

/// The names of scopes.
pub(super) fn scope_names(scopes: Scopes) -> Vec<ApiKeyScope> {
    scopes.iter().map(|scope| scope.as_str().into()).collect()
}

pub(super) fn operations() -> Vec<Operation> {
    vec![create::operation(), list::operation(), revoke::operation()]
}
