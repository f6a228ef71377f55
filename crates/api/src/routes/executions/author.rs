//! Who did something, by names.

use labdata_domain::{
    executions::started_by::Starter,
    people::author::{Author, NamedKey, NamedUser},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A user, named.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NamedUser)]
pub struct NamedUserView {
    /// Its id.
    id: String,
    /// E-mail address.
    email: String,
    /// Its name.
    name: String,
}

impl From<NamedUser> for NamedUserView {
    fn from(user: NamedUser) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email,
            name: user.name,
        }
    }
}

/// An API key, named.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NamedKey)]
pub struct NamedKeyView {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
}

impl From<NamedKey> for NamedKeyView {
    fn from(key: NamedKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
        }
    }
}

/// Who did something.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Author)]
pub struct AuthorView {
    /// The user.
    user: NamedUserView,
    /// The key that the user showed; null if it was none, or is gone.
    api_key: Option<NamedKeyView>,
}

impl From<Author> for AuthorView {
    fn from(author: Author) -> Self {
        Self {
            user: author.user.into(),
            api_key: author.api_key.map(Into::into),
        }
    }
}

/// Who or what started an execution.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = StartedBy)]
pub struct StartedByView {
    /// The user in whose name it runs.
    user: NamedUserView,
    /// The key that was shown; null for a run of a trigger.
    api_key: Option<NamedKeyView>,
    /// The job's trigger that started it; null unless one did.
    trigger_id: Option<String>,
}

impl From<Starter> for StartedByView {
    fn from(starter: Starter) -> Self {
        let AuthorView { user, api_key } = starter.author.into();
        Self {
            user,
            api_key,
            trigger_id: starter.trigger.map(|trigger| trigger.to_string()),
        }
    }
}
