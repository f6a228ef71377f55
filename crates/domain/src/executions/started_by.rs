//! Origins of executions.

use crate::{
    ids::{ApiKeyId, TriggerId, UserId},
    people::{
        author::{Author, NamedUser},
        scope::Scopes,
    },
};

/// Origin of an execution: a user, a key or a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedBy {
    /// The user; of a trigger the one who set it.
    pub user: UserId,
    /// The key that was presented.
    pub api_key: Option<ApiKeyId>,
    /// The trigger that fired. Its runs have the rights of the user who wrote the script.
    pub trigger: Option<TriggerId>,
    /// Scopes of the key of a run on the platform; `None` for other executions.
    pub run_scopes: Option<Scopes>,
}

impl StartedBy {
    /// By a user with a key.
    #[must_use]
    pub const fn key(user: UserId, api_key: ApiKeyId) -> Self {
        Self {
            user,
            api_key: Some(api_key),
            trigger: None,
            run_scopes: None,
        }
    }

    /// By a user, without a key.
    #[must_use]
    pub const fn user(user: UserId) -> Self {
        Self {
            user,
            api_key: None,
            trigger: None,
            run_scopes: None,
        }
    }
}

/// Origin of an execution, by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starter {
    /// User and key.
    pub author: Author,
    /// The trigger that fired, which may be deleted.
    pub trigger: Option<TriggerId>,
    /// The user who wrote the version of the script that runs; `None` off the platform.
    pub script_author: Option<NamedUser>,
}
