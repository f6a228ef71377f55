//! Refusals of credentials.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// A caller who presents no valid credential. A message is the same for every reason for which a
/// credential is invalid, so that it does not reveal which part of it was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredential {
    /// The request has no header `Authorization`.
    #[error("missing header: Authorization: Bearer <API key>")]
    Missing,
    /// The header `Authorization` has another scheme.
    #[error("the Authorization header must be: Bearer <API key>")]
    Scheme,
    /// The API key is not valid.
    #[error("this API key is unknown, revoked or expired")]
    Key,
    /// The session is not valid.
    #[error("this session is unknown or has ended: sign in again")]
    Session,
    /// The sign-in link is not valid.
    #[error("this link is unknown, used or expired; `labdata sign-in` prints a new one")]
    Link,
    /// The token of a training is not valid.
    #[error("this token belongs to no running training")]
    TrainingToken,
}

impl Refuse for InvalidCredential {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Missing | Self::Scheme => ErrorCode::CredentialMissing,
            Self::Key | Self::Session | Self::Link | Self::TrainingToken => {
                ErrorCode::CredentialInvalid
            }
        }
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Unauthenticated
    }
}

/// A request that a page of another site makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignSite {
    /// It carries the cookie of a session.
    #[error("a session is accepted from the platform's own pages only; scripts use an API key")]
    Session,
    /// It calls a server that programs use.
    #[error("requests of other sites' pages are not answered here")]
    Page,
}

impl Refuse for ForeignSite {
    fn code(&self) -> ErrorCode {
        ErrorCode::ForeignSite
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

/// A request with an idempotency key, to which the response would hold a secret. A stored response
/// would be a stored secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the response holds a secret, which is not stored: send this request without Idempotency-Key"
)]
pub struct SecretNotReplayed;

impl Refuse for SecretNotReplayed {
    fn code(&self) -> ErrorCode {
        ErrorCode::IdempotencyUnsupported
    }
}
