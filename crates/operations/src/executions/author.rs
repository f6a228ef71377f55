//! Authors of actions, by names.

use labdata_domain::{
    executions::started_by::Starter,
    ids::{ApiKeyId, TriggerId, UserId},
    people::author::{Author, NamedKey, NamedUser},
};
use labdata_request_body::output;

output! {
    /// A user, named.
    #[derive(Clone, Debug)]
    pub struct NamedUserView as "NamedUser" from user: NamedUser {
        /// Its id.
        id: UserId = user.id,
        /// E-mail address.
        email: String = user.email,
        /// Its name.
        name: String = user.name,
    }
}

output! {
    /// An API key, named.
    #[derive(Clone, Debug)]
    pub struct NamedKeyView as "NamedKey" from key: NamedKey {
        /// Its id.
        id: ApiKeyId = key.id,
        /// Its name.
        name: String = key.name,
    }
}

output! {
    /// Author of an action.
    #[derive(Clone, Debug)]
    pub struct AuthorView as "Author" from author: Author {
        /// The user.
        user: NamedUserView = author.user.into(),
        /// The key that the user presented; null if it was none, or is deleted.
        api_key: Option<NamedKeyView> = author.api_key.map(Into::into),
    }
}

output! {
    /// User and trigger that started an execution.
    #[derive(Clone, Debug)]
    pub struct StartedByView as "StartedBy" from starter: Starter {
        /// The user who started it; of a trigger the one who set it.
        user: NamedUserView = starter.author.user.into(),
        /// The key that was presented; null for a run of a trigger.
        api_key: Option<NamedKeyView> = starter.author.api_key.map(Into::into),
        /// The job's trigger that started it; null unless one did.
        trigger_id: Option<TriggerId> = starter.trigger,
    }
}
