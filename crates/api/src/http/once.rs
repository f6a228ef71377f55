//! `Idempotency-Key`: a repeated POST has its effect once.

use std::cell::RefCell;

use actix_web::{
    HttpRequest, HttpResponse, Responder, ResponseError,
    body::{BoxBody, to_bytes},
    http::header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use futures::FutureExt;
use labdata_application::{
    Error,
    idempotency::respond_once::{RepeatableRequest, find_response, respond_once},
};
use labdata_domain::{idempotency::StoredResponse, people::actor::Actor};
use labdata_operations::MAX_KEY_LENGTH;
use labdata_ports::idempotency::{Once, OnceError};
use labdata_request_body::{ProblemKind, ShapeProblem};
use serde_json::Value;

use super::{
    ApiError,
    call::{Call, IDEMPOTENCY_KEY},
};
use crate::app::App;

/// Header of a replayed response.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// As [`reply`], with a preparation before the handler. It is spared where the response is replayed,
/// and no connection to the database is held while it takes place.
pub(super) async fn response_prepared<R: Responder, T, S, B, Q, P>(
    request: HttpRequest,
    call: Call<S, B, Q, P>,
    prepare: impl AsyncFnOnce(&Call<S, B, Q, P>) -> T,
    handler: impl AsyncFnOnce(Call<S, B, Q, P>, T) -> R,
) -> HttpResponse {
    match earlier(&request, &call).await {
        Ok(None) => {}
        Ok(Some(response)) => return replayed(response),
        Err(error) => return error.error_response(),
    }
    let prepared = prepare(&call).await;
    reply(request, call, async move |call| {
        handler(call, prepared).await
    })
    .await
}

/// The response to an earlier request with the same key.
async fn earlier<S, B, Q, P>(
    request: &HttpRequest,
    call: &Call<S, B, Q, P>,
) -> Result<Option<StoredResponse>, ApiError> {
    let Some(body_sha256) = call.body_sha256 else {
        return Ok(None);
    };
    let key = key_of(request)?;
    let repeatable = repeatable(request, key.clone(), body_sha256);
    let found = find_response(call.ports(), &call.actor, repeatable).await;
    found.map_err(|error| error_of(&key, error))
}

fn repeatable(request: &HttpRequest, key: String, body_sha256: [u8; 32]) -> RepeatableRequest {
    RepeatableRequest {
        operation: format!("{} {}", request.method(), request.path()),
        key,
        body_sha256,
    }
}

fn error_of(key: &str, error: OnceError) -> ApiError {
    match error {
        OnceError::Reused(reused) => refusal(key, &reused.to_string()),
        OnceError::Port(error) => Error::from(error).into(),
    }
}

/// Calls the handler, or replays the response to an earlier request with the same key.
pub(super) async fn reply<R: Responder, S, B, Q, P>(
    request: HttpRequest,
    call: Call<S, B, Q, P>,
    handler: impl AsyncFnOnce(Call<S, B, Q, P>) -> R,
) -> HttpResponse {
    let (app, actor, body_sha256) = (call.app.clone(), call.actor.clone(), call.body_sha256);
    let effect = async {
        let output = handler(call).await;
        output.respond_to(&request).map_into_boxed_body()
    };
    response(&request, &app, &actor, body_sha256, effect).await
}

/// Awaits the effect, or replays the response to an earlier request with the same key. Without the
/// SHA-256 of a body, the request bears no key.
pub(super) async fn response(
    request: &HttpRequest,
    app: &App,
    actor: &Actor,
    body_sha256: Option<[u8; 32]>,
    effect: impl Future<Output = HttpResponse>,
) -> HttpResponse {
    let Some(body_sha256) = body_sha256 else {
        return effect.await;
    };
    let key = match key_of(request) {
        Ok(key) => key,
        Err(error) => return error.error_response(),
    };
    let repeatable = repeatable(request, key.clone(), body_sha256);
    let first = RefCell::new(None);
    let effect = async {
        let (response, stored) = keep(effect.await).await;
        first.replace(Some(response));
        stored
    };
    match respond_once(&app.ports, actor, repeatable, effect.boxed_local()).await {
        Ok(Once::Ran) => first.take().unwrap_or_else(|| {
            ApiError::from(Error::Internal("an effect did not answer".to_owned())).error_response()
        }),
        Ok(Once::Replayed(reply)) => replayed(reply),
        Err(error) => error_of(&key, error).error_response(),
    }
}

/// Reads the request's key: 1 to 255 visible characters.
fn key_of(request: &HttpRequest) -> Result<String, ApiError> {
    let mut values = request.headers().get_all(IDEMPOTENCY_KEY);
    let (first, second) = (values.next(), values.next());
    let text = first.and_then(|value| value.to_str().ok());
    match text.map(str::trim) {
        Some(key) if second.is_none() && (1..=MAX_KEY_LENGTH).contains(&key.len()) => {
            Ok(key.to_owned())
        }
        key => Err(refusal(
            key.unwrap_or_default(),
            "an idempotency key is one header of 1 to 255 ASCII characters",
        )),
    }
}

fn refusal(key: &str, message: &str) -> ApiError {
    ApiError::Shape(vec![ShapeProblem::of_header(
        "Idempotency-Key",
        ProblemKind::value_error(message),
        Value::String(key.to_owned()),
    )])
}

/// Buffers a successful response and returns it with a copy to store; returns others unchanged.
async fn keep(response: HttpResponse) -> (HttpResponse, Option<StoredResponse>) {
    if !response.status().is_success() {
        return (response, None);
    }
    let status = response.status().as_u16();
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let (head, body) = response.into_parts();
    let Ok(body) = to_bytes(body).await else {
        let broken = Error::Internal("an answer could not be rendered".to_owned());
        return (ApiError::from(broken).error_response(), None);
    };
    let stored = StoredResponse {
        status,
        content_type,
        body: body.to_vec(),
    };
    (head.set_body(BoxBody::new(body)), Some(stored))
}

fn replayed(reply: StoredResponse) -> HttpResponse {
    let status = actix_web::http::StatusCode::from_u16(reply.status).unwrap_or_default();
    let mut response = HttpResponse::build(status);
    response.insert_header((IDEMPOTENT_REPLAYED, HeaderValue::from_static("true")));
    if !reply.content_type.is_empty() {
        response.insert_header((CONTENT_TYPE, reply.content_type));
    }
    response.body(reply.body)
}
