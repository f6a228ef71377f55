//! Requests that a client may send again without their effect happening twice.

use std::fmt;

use async_trait::async_trait;
use labdata_domain::{
    idempotency::{Fingerprint, KeyReused, StoredResponse},
    ids::{ApiKeyId, OrganizationId},
};
use time::OffsetDateTime;

use crate::{PortError, Repositories};

/// A request that bears an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// Organization of the API key.
    pub organization: OrganizationId,
    /// The presented API key: another one's requests are other requests.
    pub api_key: ApiKeyId,
    /// Method and path, such as `POST /api/v1/jobs`.
    pub operation: String,
    /// The idempotency key.
    pub key: String,
    /// Fingerprint that its repetitions have as well.
    pub fingerprint: Fingerprint,
    /// Now.
    pub now: OffsetDateTime,
}

/// First step of a request.
pub enum Begun {
    /// Its effect is to run now, in this unit of work.
    New(Box<dyn UnitOfWork>),
    /// It ran before, with this response.
    Replayed(StoredResponse),
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(_) => f.write_str("New"),
            Self::Replayed(response) => f.debug_tuple("Replayed").field(response).finish(),
        }
    }
}

/// A transaction of the store that its caller holds: the effect of a request, and its response.
///
/// Dropping it rolls it back, and so does an error of [`UnitOfWork::commit`]. After its end, calls of
/// its repositories fail.
#[async_trait]
pub trait UnitOfWork: Send + Sync {
    /// Returns the repositories of the store, bound to this transaction. Work that they begin together
    /// takes turns, as one transaction does one thing at a time.
    fn repositories(&self) -> Repositories;

    /// Stores the changes made through [`Self::repositories`], and with them the response of a request that
    /// bears an idempotency key: all, or nothing. A unit within another is stored with that one.
    ///
    /// # Errors
    /// [`PortError`] of the store; nothing was stored.
    async fn commit(&self, response: Option<&StoredResponse>) -> Result<(), PortError>;

    /// Undoes the changes and stores no response: the request may run again. The changes of a unit within
    /// another are undone with that one, which MUST be rolled back too.
    async fn roll_back(&self);
}

/// Begins units of work.
#[async_trait]
pub trait Units: Send + Sync {
    /// Begins a unit of work of the organization. Of repositories that take part in one already, it is a part
    /// of that.
    ///
    /// # Errors
    /// [`PortError`] of the store.
    async fn begin(&self, organization: OrganizationId) -> Result<Box<dyn UnitOfWork>, PortError>;
}

/// Why a request was neither run nor replayed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The key was used before, for another request or with other rights.
    #[error(transparent)]
    Reused(#[from] KeyReused),
    /// The port failed; [`PortError::Busy`] when the same request runs elsewhere for too long.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Effects that happen once per request.
#[async_trait]
pub trait Idempotency: Send + Sync {
    /// Begins a unit of work for the request, unless the same request (by API key, operation and key)
    /// was responded to before and
    /// [`CompletedRequest::replay`](labdata_domain::idempotency::CompletedRequest::replay) has a
    /// response or a refusal. Of racing calls one begins, and the rest wait until its unit has ended.
    ///
    /// # Errors
    /// See [`OnceError`].
    async fn begin(&self, request: &IdempotentRequest) -> Result<Begun, OnceError>;

    /// Returns the response to the same request, if there is one to replay. Waits for no request that
    /// runs, so [`Idempotency::begin`] decides.
    ///
    /// # Errors
    /// See [`OnceError`].
    async fn find_response(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<StoredResponse>, OnceError>;

    /// Deletes up to `limit` responses that
    /// [have expired](labdata_domain::idempotency::expired_at); returns their number.
    async fn forget_expired(&self, now: OffsetDateTime, limit: u32) -> Result<u64, PortError>;
}
