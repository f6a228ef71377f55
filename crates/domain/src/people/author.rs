//! Author of an action, by names that people know.

use super::{ApiKey, tenancy::User};
use crate::ids::{ApiKeyId, UserId};

/// A user, named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    /// Id.
    pub id: UserId,
    /// E-mail address.
    pub email: String,
    /// Display name.
    pub name: String,
}

/// An API key, named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKey {
    /// Id.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
}

/// A user, and the key that the user presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The user.
    pub user: NamedUser,
    /// The key; `None` if it was none, or no longer exists.
    pub api_key: Option<NamedKey>,
}

impl NamedUser {
    /// The names of a user.
    #[must_use]
    pub fn of(user: &User) -> Self {
        Self {
            id: user.id,
            email: user.email.clone(),
            name: user.name.clone(),
        }
    }
}

impl NamedKey {
    /// The name of a key.
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name.clone(),
        }
    }
}

impl Author {
    /// The names of a user and a key.
    #[must_use]
    pub fn of(user: &User, api_key: Option<&ApiKey>) -> Self {
        Self {
            user: NamedUser::of(user),
            api_key: api_key.map(NamedKey::of),
        }
    }
}
