//! Sign-in by an identity provider.

use async_trait::async_trait;
use labdata_domain::{
    ids::{ApiKeyId, OrganizationId, UserId},
    people::{
        ApiKeyHash,
        oidc::{Groups, SignInAttempt},
    },
};
use time::OffsetDateTime;

use crate::PortError;

/// A person, as the provider knows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// Issuer that says so.
    pub issuer: String,
    /// The person's id at the issuer.
    pub subject: String,
    /// E-mail address, only if the provider says that it is verified.
    pub email: Option<String>,
    /// Name for people.
    pub name: Option<String>,
    /// Groups.
    pub groups: Groups,
    /// Refresh token, sealed by the adapter, which alone reads it.
    pub refresh: Option<Vec<u8>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Error: the provider does not say who a person is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// It refused, with this error code of OAuth.
    #[error("refused: {0}")]
    Refused(String),
    /// Its response is not to be trusted; the text is for the log.
    #[error("invalid: {0}")]
    Invalid(String),
    /// It cannot be reached, or failed; the text is for the log.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// An `OpenID` provider.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Finds out whether the provider responds with a document and keys that can be used.
    async fn check(&self) -> Result<(), ProviderError>;

    /// URL at which the browser signs in, with PKCE.
    async fn authorization_url(
        &self,
        attempt: &SignInAttempt,
        redirect_uri: &str,
    ) -> Result<String, ProviderError>;

    /// Exchanges the code of a callback. `issuer` is its parameter `iss`: MUST be refused if it is another one's,
    /// or missing although the provider says that it sends it. The ID token MUST be signed by a current key of
    /// the provider with an asymmetric algorithm, and its claims be those that
    /// [`IdTokenClaims::check`](labdata_domain::people::oidc::IdTokenClaims::check) accepts.
    async fn exchange(
        &self,
        attempt: &SignInAttempt,
        code: &str,
        issuer: Option<&str>,
        redirect_uri: &str,
    ) -> Result<Identity, ProviderError>;

    /// Asks again for the person of a sealed refresh token.
    async fn refresh(&self, sealed: &[u8], subject: &str) -> Result<Identity, ProviderError>;
}

/// A session that the provider began, with the refresh token that renews it.
#[derive(Clone)]
pub struct ProviderSession {
    /// Hash of the session's token.
    pub session: ApiKeyHash,
    /// Organization of the session.
    pub organization: OrganizationId,
    /// The key on which the session rests.
    pub key: ApiKeyId,
    /// Its user.
    pub user: UserId,
    /// The person's id at the provider.
    pub subject: String,
    /// Sealed refresh token.
    pub refresh: Vec<u8>,
    /// When the provider is asked again.
    pub check_at: OffsetDateTime,
}

impl std::fmt::Debug for ProviderSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderSession")
            .field("user", &self.user)
            .field("check_at", &self.check_at)
            .finish_non_exhaustive()
    }
}

/// Repository of used sign-ins, accounts of users, and sessions that the provider began.
#[async_trait]
pub trait OidcStore: Send + Sync {
    /// Stores a sign-in as used until it ends; returns false if it was used before. Of racing calls one MUST
    /// return true.
    async fn use_attempt(
        &self,
        attempt: ApiKeyHash,
        ends_at: OffsetDateTime,
    ) -> Result<bool, PortError>;

    /// The user of the organization to whom an account of the provider is linked.
    async fn linked_user(
        &self,
        organization: OrganizationId,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<UserId>, PortError>;

    /// Links a user to an account of the provider unless the user or the account is linked; returns whether the
    /// two belong together then.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the user is not the organization's.
    async fn link_account(
        &self,
        organization: OrganizationId,
        user: UserId,
        issuer: &str,
        subject: &str,
    ) -> Result<bool, PortError>;

    /// Stores the refresh token of a session. It MUST be removed together with the session.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown session.
    async fn add_session(&self, session: &ProviderSession) -> Result<(), PortError>;

    /// Takes up to `limit` sessions of all organizations that are due, the longest due first, and makes them due
    /// again at `next`: of racing calls one MUST get each.
    async fn due_sessions(
        &self,
        now: OffsetDateTime,
        next: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<ProviderSession>, PortError>;

    /// Replaces a session's refresh token and the time of its next check. Does nothing if it no longer exists.
    async fn checked(&self, session: &ProviderSession) -> Result<(), PortError>;

    /// Removes used sign-ins that have ended; returns their number.
    async fn remove_ended_attempts(&self, now: OffsetDateTime) -> Result<u64, PortError>;
}
