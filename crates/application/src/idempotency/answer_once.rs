//! Answers a request that carries an idempotency key.

use futures::future::LocalBoxFuture;
use labdata_domain::{idempotency::StoredResponse, keys::actor::Actor};
use labdata_ports::idempotency::{IdempotentRequest, Once, OnceError};

use crate::Ports;

/// A request that its client may send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatableRequest {
    /// Method and path, such as `POST /api/v1/jobs`.
    pub operation: String,
    /// The idempotency key.
    pub key: String,
    /// SHA-256 of the body.
    pub body_sha256: [u8; 32],
}

/// Runs `effect`, unless the actor's key sent the same request before. A response that the effect
/// returns is stored together with what the effect changes.
///
/// # Errors
/// [`OnceError`].
pub async fn answer_once(
    ports: &Ports,
    actor: &Actor,
    request: RepeatableRequest,
    effect: LocalBoxFuture<'_, Option<StoredResponse>>,
) -> Result<Once, OnceError> {
    let request = IdempotentRequest {
        organization: actor.organization,
        api_key: actor.api_key,
        operation: request.operation,
        key: request.key,
        body_sha256: request.body_sha256,
        now: ports.clock.now(),
    };
    ports.idempotency.once(&request, effect).await
}
