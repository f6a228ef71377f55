//! Serves declared operations.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    dev::Payload,
    http::header::{CACHE_CONTROL, HeaderValue},
    web::{self, Bytes, Data},
};
use labdata_application::Error;
use labdata_domain::people::{actor::Actor, credential::SecretNotReplayed};
use labdata_operations::{Access, BodyKind, Idempotency, Operation, Preparation, Request};
use sha2::{Digest, Sha256};

use super::{
    ApiError,
    body::{drain, receive_json_within},
    call::admit,
    once::Once,
    request::{IDEMPOTENCY_KEY, path_document, query_document},
    response::respond,
};
use crate::app::App;

/// A request that is read: its caller, and the preparation of its effect.
struct Received {
    app: Data<App>,
    actor: Actor,
    /// SHA-256 of the body, where the request bears an idempotency key.
    body_sha256: Option<[u8; 32]>,
    preparation: Preparation,
}

/// Serves a request to an operation.
pub(super) async fn serve(
    operation: Arc<Operation>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let mut payload = payload.into_inner();
    let received = receive(&operation, &request, &mut payload).await;
    if received.is_err() {
        // A client reads the response only after it has sent its body.
        drain(&mut payload).await;
    }
    let Received {
        app,
        actor,
        body_sha256,
        preparation,
    } = received?;
    let services = Arc::clone(&app.services);
    match operation.idempotency {
        Idempotency::Natural => Ok(respond(&request, preparation.await(services).await?)),
        Idempotency::ByKey => {
            let once = body_sha256.map(|sha256| Once::of(&request, sha256));
            let Some(once) = once.transpose()? else {
                return Ok(respond(&request, preparation.await(services).await?));
            };
            if operation.is_prepared {
                // `begin` decides, but comes after work that a repeated request does not need.
                once.refuse_repeated(&services, &actor).await?;
            }
            let effect = preparation.await;
            let services = Arc::clone(once.begin(&services, &actor).await?);
            // An error is a response as well: the unit of work has to be ended, which undoes it.
            let response = match effect(services).await {
                Ok(reply) => {
                    once.mark_dry_run(reply.is_dry_run);
                    respond(&request, reply)
                }
                Err(error) => HttpResponse::from_error(ApiError::from(error)),
            };
            Ok(once.end(response).await)
        }
        // A stored response would be a stored secret.
        Idempotency::Secret if body_sha256.is_some() => {
            Err(Error::refused(SecretNotReplayed).into())
        }
        Idempotency::Secret => {
            let mut response = respond(&request, preparation.await(services).await?);
            // The body has the secret in plain text; no cache may store it.
            let no_store = HeaderValue::from_static("no-store");
            response.headers_mut().insert(CACHE_CONTROL, no_store);
            Ok(response)
        }
    }
}

/// Receives and reads a request. The first step that fails is the response: the key (401), its scope
/// (403), the body's Content-Type (415), its size (413), then all problems of shape (422).
async fn receive(
    operation: &Operation,
    request: &HttpRequest,
    payload: &mut Payload,
) -> Result<Received, ApiError> {
    let scope = match operation.access {
        Access::Scope(scope) => Some(scope),
        Access::AnyKey | Access::Open => None,
    };
    // Before the body: a caller without the right cannot make the server buffer one.
    let (app, actor) = admit(request, scope).await?;
    if let Some(scope) = operation.scope_by_query {
        let scope = scope(&app.services, &query_document(request));
        actor.require(scope).map_err(Error::from)?;
    }
    let limit = (operation.body_limit(), operation.body_work());
    let body = match operation.body {
        BodyKind::None => {
            drain(payload).await;
            Bytes::new()
        }
        BodyKind::Json => receive_json_within(request, payload, true, limit).await?,
        BodyKind::OptionalJson => receive_json_within(request, payload, false, limit).await?,
    };
    let is_repeatable = request.headers().contains_key(IDEMPOTENCY_KEY);
    let body_sha256 = is_repeatable.then(|| Sha256::digest(&body).into());
    let preparation = operation.read(Request {
        platform: Arc::clone(&app.platform),
        actor: actor.clone(),
        base_url: app.public_url.as_reached(request),
        path: path_document(request),
        query: query_document(request),
        body,
    });
    Ok(Received {
        app,
        actor,
        body_sha256,
        preparation: preparation.map_err(ApiError::Shape)?,
    })
}
