//! Sessions of browsers, and links that open them.

use async_trait::async_trait;
use labdata_domain::people::{
    ApiKeyHash,
    session::{FoundSession, Session, SignInLink},
};
use time::OffsetDateTime;

use crate::PortError;

/// Repository of sessions and links.
#[async_trait]
pub trait SessionRepository: Send + Sync {
    /// Stores a new session of a key of its organization, and removes the key's oldest others beyond
    /// [`MAX_SESSIONS_PER_KEY`](labdata_domain::people::session::MAX_SESSIONS_PER_KEY). Of racing calls
    /// each MAY leave the sessions of the rest.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the key is not the organization's.
    async fn add(&self, session: &Session) -> Result<(), PortError>;

    /// The session of that token in any organization: the organization follows from the token. Ended
    /// ones, and those of keys that are not valid, are returned as well.
    async fn find(&self, token: ApiKeyHash) -> Result<Option<FoundSession>, PortError>;

    /// Notes that a session was used at that time; never moves a time back. Does nothing if it no longer exists.
    async fn touch(&self, token: ApiKeyHash, at: OffsetDateTime) -> Result<(), PortError>;

    /// Removes a session, if it is there.
    async fn remove(&self, token: ApiKeyHash) -> Result<(), PortError>;

    /// Stores a new link.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the user is not the organization's.
    async fn add_link(&self, link: &SignInLink) -> Result<(), PortError>;

    /// Removes a link and returns it, if it is there: of racing calls one MUST get it.
    async fn take_link(&self, token: ApiKeyHash) -> Result<Option<SignInLink>, PortError>;

    /// Removes the sessions and links of every organization that have ended by then; returns their
    /// number.
    async fn remove_ended(&self, now: OffsetDateTime) -> Result<u64, PortError>;
}
