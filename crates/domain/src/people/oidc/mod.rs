//! Sign-in by an identity provider, with OpenID Connect (contract §19).

mod attempt;
mod claims;
mod policy;

use time::Duration;

pub use self::{
    attempt::{ReturnPath, SignInAttempt},
    claims::{ExpectedClaims, IdTokenClaims, InvalidClaims},
    policy::{EmailDomains, Groups, InvalidRoles, OidcPolicy, RoleMapping},
};

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Time in which a person signs in at the provider.
pub const ATTEMPT_LIFETIME: Duration = Duration::minutes(10);

/// Time after which the provider is asked again whether a person still has the role. Together with
/// [`REFRESH_RETRY`] and the minute between two passes it is less than 15 minutes.
pub const REFRESH_EVERY: Duration = Duration::minutes(8);

/// Time after which a session is asked for again that another server took and did not finish, or for which the
/// provider did not respond.
pub const REFRESH_RETRY: Duration = Duration::minutes(5);

/// Error: a sign-in with the provider is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInRefused {
    /// The platform has no provider.
    #[error("this platform has no identity provider (LABDATA_OIDC_ISSUER)")]
    NotConfigured,
    /// The callback does not belong to a sign-in of this browser, or that took too long or was used.
    #[error("this sign-in is not valid any more: begin again")]
    InvalidAttempt,
    /// The provider refuses, with this code.
    #[error("the identity provider refused the sign-in: {0}")]
    ByProvider(String),
    /// The provider's tokens cannot be trusted.
    #[error("the identity provider's response is not valid; the server's log has the reason")]
    InvalidTokens,
    /// The provider does not say that the e-mail address is the person's.
    #[error("the identity provider does not say that your e-mail address is verified")]
    UnverifiedEmail,
    /// None of the person's groups is mapped to a role.
    #[error("none of your groups has a role on this platform: ask an administrator")]
    NoRole,
    /// The provider names no groups of the person.
    #[error(
        "the identity provider does not say to which groups you belong: an administrator has to let it send them \
         in the claim that LABDATA_OIDC_GROUPS_CLAIM names"
    )]
    GroupsMissing,
    /// The person is in more groups than the provider lists.
    #[error(
        "you are in more groups than the identity provider lists: an administrator has to let it send the groups of \
         this platform only, or roles, in the claim that LABDATA_OIDC_GROUPS_CLAIM names"
    )]
    GroupsOmitted,
    /// The organization that people sign in to does not exist.
    #[error(
        "the organization {0:?} does not exist: an administrator has to correct LABDATA_OIDC_ORGANIZATION"
    )]
    UnknownOrganization(String),
    /// The person has no user, and none is made.
    #[error("{0} has no user on this platform: ask an administrator")]
    UnknownUser(String),
    /// The user is disabled.
    #[error("your user is disabled: ask an administrator")]
    Disabled,
    /// The user of this e-mail address signs in with another account of the provider.
    #[error("the user of this e-mail address belongs to another account of the identity provider")]
    OtherAccount,
}

impl Refuse for SignInRefused {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotConfigured => ErrorCode::NotFound,
            Self::InvalidAttempt => ErrorCode::CredentialInvalid,
            _ => ErrorCode::SignInRefused,
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::NotConfigured => RefusalKind::NotFound,
            Self::InvalidAttempt => RefusalKind::Unauthenticated,
            _ => RefusalKind::Forbidden,
        }
    }
}
