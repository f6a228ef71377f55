//! Requests that a client may send again without their effect happening twice.

use async_trait::async_trait;
use futures::future::{BoxFuture, LocalBoxFuture};
use labdata_domain::{
    idempotency::{KeyReused, StoredResponse},
    ids::{ApiKeyId, OrganizationId},
};
use time::OffsetDateTime;

use crate::PortError;

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
    #[error(transparent)]
    Reused(#[from] KeyReused),
    /// The port failed; [`PortError::Busy`] when the same request runs elsewhere for too long.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Runs effects once per request.
///
/// The effect may do anything that a task does, so it need not be `Send`.
#[async_trait(?Send)]
pub trait Idempotency: Send + Sync {
    /// Runs `effect`, unless the same request (by API key, operation and key) was answered before
    /// and [`CompletedRequest::replay`](labdata_domain::idempotency::CompletedRequest::replay) has a
    /// response or a refusal. A response that the effect returns is stored; `None` says that the
    /// effect failed, and nothing is stored. The effect, as far as it goes through ports of the same
    /// store, and its response are stored in one step: both, or neither. Of racing calls one runs,
    /// and the rest wait for it.
    ///
    /// # Errors
    /// See [`OnceError`].
    async fn once(
        &self,
        request: &IdempotentRequest,
        effect: LocalBoxFuture<'_, Option<StoredResponse>>,
    ) -> Result<Once, OnceError>;

    /// Returns the response to the same request, if there is one to replay. Waits for no request that
    /// runs, so [`Idempotency::once`] decides.
    ///
    /// # Errors
    /// See [`OnceError`].
    async fn answered(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<StoredResponse>, OnceError>;

    /// Deletes up to `limit` responses that
    /// [have expired](labdata_domain::idempotency::expired_at); returns their number.
    fn forget_expired(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> BoxFuture<'_, Result<u64, PortError>>;
}
