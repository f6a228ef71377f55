//! Answers a request that carries an idempotency key.

use futures::future::LocalBoxFuture;
use labdata_domain::{idempotency::StoredResponse, people::actor::Actor};
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

impl RepeatableRequest {
    fn of(self, ports: &Ports, actor: &Actor) -> IdempotentRequest {
        IdempotentRequest {
            organization: actor.organization,
            api_key: actor.api_key,
            operation: self.operation,
            key: self.key,
            body_sha256: self.body_sha256,
            now: ports.clock.now(),
        }
    }
}

/// Returns the response to the same request, if the actor's key sent it before. Spares the preparation
/// of an effect that will not run.
///
/// # Errors
/// [`OnceError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn find_response(
    ports: &Ports,
    actor: &Actor,
    request: RepeatableRequest,
) -> Result<Option<StoredResponse>, OnceError> {
    ports.idempotency.answered(&request.of(ports, actor)).await
}

/// Runs `effect`, unless the actor's key sent the same request before. A response that the effect
/// returns is stored together with what the effect changes.
///
/// # Errors
/// [`OnceError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn respond_once(
    ports: &Ports,
    actor: &Actor,
    request: RepeatableRequest,
    effect: LocalBoxFuture<'_, Option<StoredResponse>>,
) -> Result<Once, OnceError> {
    ports
        .idempotency
        .once(&request.of(ports, actor), effect)
        .await
}
