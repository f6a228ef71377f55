//! `/api/v1/users`

use labdata_domain::people::tenancy::User;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Timestamp;

pub mod create;
pub mod list;
pub mod update;

/// A user of the organization.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    /// Its id.
    id: String,
    /// E-mail address, unique within the organization without regard to case.
    #[schema(example = "ada@lab.example")]
    email: String,
    /// Display name; the e-mail address unless set.
    #[schema(example = "Ada Lovelace")]
    name: String,
    created_at: Timestamp,
    /// Since when the keys of this user are refused.
    disabled_at: Option<Timestamp>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email,
            name: user.name,
            created_at: user.created_at.into(),
            disabled_at: user.disabled_at.map(Into::into),
        }
    }
}
