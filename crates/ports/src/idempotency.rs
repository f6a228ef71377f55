//! Requests that a client may send again without their effect happening twice.

use async_trait::async_trait;
use futures::future::{BoxFuture, LocalBoxFuture};
use labdata_domain::ids::{ApiKeyId, OrganizationId};
use time::{Duration, OffsetDateTime};

use crate::PortError;

/// Retention of stored responses (contract §3).
pub const KEPT_FOR: Duration = Duration::hours(24);

/// A request that bears an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// Organization of the API key.
    pub organization: OrganizationId,
    /// The API key that was shown: another one's requests are other requests.
    pub api_key: ApiKeyId,
    /// Method and path, such as `POST /api/v1/jobs`.
    pub operation: String,
    /// The idempotency key.
    pub key: String,
    /// The SHA-256 of the body.
    pub body_sha256: [u8; 32],
    /// Now.
    pub now: OffsetDateTime,
}

/// An answer as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body's media type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// Its effect ran now.
    Ran,
    /// It ran before; this was the answer.
    Replayed(StoredResponse),
}

/// Why a request was neither run nor replayed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The key was used for a request with another body.
    #[error("the idempotency key was used with another body")]
    OtherBody,
    /// The port failed; [`PortError::Busy`] when the same request runs elsewhere for too long.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Runs effects once per request.
///
/// The effect may do anything that a task does, so it need not be `Send`.
#[async_trait(?Send)]
pub trait Idempotency: Send + Sync {
    /// Runs `effect`, unless the same request (by API key, operation and key) was answered within
    /// [`KEPT_FOR`]. An answer that the effect returns is kept; `None` says that it failed, and
    /// then nothing is kept. The effect, as far as it goes through ports of the same store, and
    /// its answer are stored in one step: both, or neither. Of racing calls one runs and the
    /// others wait for it.
    ///
    /// # Errors
    /// See [`OnceError`].
    async fn once(
        &self,
        request: &IdempotentRequest,
        effect: LocalBoxFuture<'_, Option<StoredResponse>>,
    ) -> Result<Once, OnceError>;

    /// Forgets answers that are no longer kept, at most `limit` of them; returns how many.
    fn forget_expired(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> BoxFuture<'_, Result<u64, PortError>>;
}
