//! `/api/v1/api-keys`

use labdata_domain::people::{ApiKey, scope::Scope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

use crate::http::Timestamp;

pub mod create;
pub mod list;
pub mod revoke;

names! {
    /// Scope of an API key; none implies another.
    pub ApiKeyScope = Scope::ALL.map(Scope::as_str);
}

/// An API key, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    /// Its id.
    id: String,
    /// The user to whom it belongs.
    user_id: String,
    /// Its name.
    name: String,
    /// The public part of the key.
    #[schema(example = "k3v9q2mx")]
    prefix: String,
    /// Its scopes.
    #[schema(value_type = Vec<ApiKeyScope>, example = json!(["read", "write"]))]
    scopes: Vec<&'static str>,
    created_at: Timestamp,
    /// From when on it is refused; null for never.
    expires_at: Option<Timestamp>,
    /// About when it was last used.
    last_used_at: Option<Timestamp>,
    /// When it was revoked; null while it is valid.
    revoked_at: Option<Timestamp>,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            user_id: key.user.to_string(),
            name: key.name,
            prefix: key.prefix,
            scopes: key.scopes.iter().map(Scope::as_str).collect(),
            created_at: key.created_at.into(),
            expires_at: key.expires_at.map(Into::into),
            last_used_at: key.last_used_at.map(Into::into),
            revoked_at: key.revoked_at.map(Into::into),
        }
    }
}
