//! Who or what started an execution.

use crate::{
    ids::{ApiKeyId, TriggerId, UserId},
    people::author::Author,
};

/// Who or what started an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedBy {
    /// The user in whose name it runs.
    pub user: UserId,
    /// The key that was displayed.
    pub api_key: Option<ApiKeyId>,
    /// The trigger that fired. Its runs are in the name of the user who set it.
    pub trigger: Option<TriggerId>,
}

impl StartedBy {
    /// By a user with a key.
    #[must_use]
    pub const fn key(user: UserId, api_key: ApiKeyId) -> Self {
        Self {
            user,
            api_key: Some(api_key),
            trigger: None,
        }
    }

    /// By a user, without a key.
    #[must_use]
    pub const fn user(user: UserId) -> Self {
        Self {
            user,
            api_key: None,
            trigger: None,
        }
    }
}

/// Who or what started an execution, by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starter {
    /// User and key.
    pub author: Author,
    /// The trigger that fired, which may be deleted.
    pub trigger: Option<TriggerId>,
}
