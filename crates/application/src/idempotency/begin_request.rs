//! Begins a request that carries an idempotency key.

use labdata_domain::{
    idempotency::{Fingerprint, StoredResponse},
    people::actor::Actor,
};
use labdata_ports::idempotency::{Begun, IdempotentRequest, OnceError};

use super::unit_of_work::UnitOfWork;
use crate::{Services, models::visible_datasets::visible_tables};

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
    fn of(self, services: &Services, actor: &Actor) -> IdempotentRequest {
        IdempotentRequest {
            organization: actor.organization,
            api_key: actor.api_key,
            operation: self.operation,
            key: self.key,
            fingerprint: Fingerprint {
                body: self.body_sha256,
                rights: actor.rights.digest(),
            },
            now: services.clock.now(),
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
    services: &Services,
    actor: &Actor,
    request: RepeatableRequest,
) -> Result<Option<StoredResponse>, OnceError> {
    let request = request.of(services, actor);
    match services.idempotency.find_response(&request).await? {
        Some(response) => Ok(Some(shown(services, actor, response).await?)),
        None => Ok(None),
    }
}

/// A stored response, if the actor may see all that it shows.
async fn shown(
    services: &Services,
    actor: &Actor,
    response: StoredResponse,
) -> Result<StoredResponse, OnceError> {
    // Most responses show no table, which needs no look at the catalog.
    if response.tables.is_empty() {
        return Ok(response);
    }
    Ok(response.shown_to(&visible_tables(services, actor).await?)?)
}

/// First step of a request.
#[derive(Debug)]
pub enum BegunRequest {
    /// Its effect is to run now, in this unit of work.
    New(Box<UnitOfWork>),
    /// It ran before, with this response.
    Replayed(StoredResponse),
}

/// Begins a unit of work for the request, unless the actor's key sent it before. While the same request
/// runs, waits for its end.
///
/// # Errors
/// [`OnceError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_request(
    services: &Services,
    actor: &Actor,
    request: RepeatableRequest,
) -> Result<BegunRequest, OnceError> {
    let begun = services
        .idempotency
        .begin(&request.of(services, actor))
        .await?;
    Ok(match begun {
        Begun::New(transaction) => {
            BegunRequest::New(Box::new(UnitOfWork::new(services, transaction)))
        }
        Begun::Replayed(response) => {
            BegunRequest::Replayed(shown(services, actor, response).await?)
        }
    })
}
