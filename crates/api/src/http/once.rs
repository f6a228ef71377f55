//! `Idempotency-Key`: a repeated POST has its effect once.

use std::{cell::Cell, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    body::{BoxBody, to_bytes},
    http::header::CONTENT_TYPE,
};
use labdata_application::{
    Error, Services,
    idempotency::{
        begin_request::{BegunRequest, RepeatableRequest, begin_request, find_response},
        unit_of_work::UnitOfWork,
    },
};
use labdata_domain::{idempotency::StoredResponse, people::actor::Actor};
use labdata_operations::MAX_KEY_LENGTH;
use labdata_ports::idempotency::OnceError;
use labdata_request_body::{ProblemKind, ShapeProblem};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{
    ApiError,
    error::IDEMPOTENT_REPLAYED,
    request::{IDEMPOTENCY_KEY, path_document},
};

/// A request with an `Idempotency-Key`, and its unit of work once its effect has begun.
#[derive(Debug)]
pub(super) struct Once {
    request: RepeatableRequest,
    unit: OnceCell<UnitOfWork>,
    is_dry_run: Cell<bool>,
}

impl Once {
    /// Reads the key of a request whose body has that SHA-256.
    pub(super) fn of(request: &HttpRequest, body_sha256: [u8; 32]) -> Result<Self, ApiError> {
        Ok(Self {
            request: RepeatableRequest {
                operation: operation_of(request),
                key: key_of(request)?,
                body_sha256,
            },
            unit: OnceCell::new(),
            is_dry_run: Cell::new(false),
        })
    }

    /// Returns the error that makes the response the stored one, if there is one.
    pub(super) async fn refuse_repeated(
        &self,
        services: &Services,
        actor: &Actor,
    ) -> Result<(), ApiError> {
        match find_response(services, actor, self.request.clone()).await {
            Ok(None) => Ok(()),
            Ok(Some(response)) => Err(ApiError::Replayed(response)),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Begins the unit of work, unless the request has a response, and returns the ports within it.
    pub(super) async fn begin(
        &self,
        services: &Services,
        actor: &Actor,
    ) -> Result<&Arc<Services>, ApiError> {
        let begin = async || match begin_request(services, actor, self.request.clone()).await {
            Ok(BegunRequest::New(unit)) => Ok(*unit),
            Ok(BegunRequest::Replayed(response)) => Err(ApiError::Replayed(response)),
            Err(error) => Err(self.error(error)),
        };
        Ok(self.unit.get_or_try_init(begin).await?.services())
    }

    /// States that the request changes nothing, so its response is not stored: another attempt runs again.
    pub(super) fn mark_dry_run(&self, is_dry_run: bool) {
        self.is_dry_run.set(is_dry_run);
    }

    /// Ends the unit of work, if it has begun: a successful response is stored in it, any other undoes it.
    pub(super) async fn end(&self, response: HttpResponse) -> HttpResponse {
        let Some(unit) = self.unit.get() else {
            let is_replayed = response.headers().contains_key(IDEMPOTENT_REPLAYED);
            if response.status().is_success() && !is_replayed && !self.is_dry_run.get() {
                // A handler that never began would have its effect again with each repetition.
                let forgotten = Error::Internal("an effect has no unit of work".to_owned());
                return ApiError::from(forgotten).error_response();
            }
            return response;
        };
        let (response, stored) = if self.is_dry_run.get() {
            (response, None)
        } else {
            buffer(response).await
        };
        match unit.end(stored).await {
            // Only after the commit: the client must not hear of an effect that is rolled back.
            Ok(()) => response,
            // With its cause, for the log and for the code of the response.
            Err(error) => HttpResponse::from_error(ApiError::from(error)),
        }
    }

    fn error(&self, error: OnceError) -> ApiError {
        match error {
            OnceError::Reused(reused) => refusal(&self.request.key, &reused.to_string()),
            OnceError::Port(error) => Error::from(error).into(),
        }
    }
}

/// The request's method and path in one spelling: the router also matches a path with needless
/// escapes, and an id in capitals is the same id.
fn operation_of(request: &HttpRequest) -> String {
    let mut path = request
        .match_pattern()
        .unwrap_or_else(|| request.path().to_owned());
    if let Value::Object(parameters) = path_document(request) {
        for (name, value) in &parameters {
            let value = value.as_str().unwrap_or_default();
            let value =
                Uuid::try_parse(value).map_or_else(|_| value.to_owned(), |id| id.to_string());
            let value = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
            // With its hyphens, an id is spelled as in requests that were stored before.
            path = path.replace(
                &format!("{{{name}}}"),
                &value.replace("%2D", "-").replace("%5F", "_"),
            );
        }
    }
    format!("{} {path}", request.method())
}

/// Reads the request's key: 1 to 255 visible characters.
fn key_of(request: &HttpRequest) -> Result<String, ApiError> {
    let mut values = request.headers().get_all(IDEMPOTENCY_KEY);
    // Of two headers neither is safe to choose: a proxy may have added one.
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
async fn buffer(response: HttpResponse) -> (HttpResponse, Option<StoredResponse>) {
    // A failed effect is undone, so that a retry with the same key runs again.
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
    // The row is stored in the transaction of the effect, so the body has to be whole before the commit.
    let Ok(body) = to_bytes(body).await else {
        let broken = Error::Internal("a response could not be rendered".to_owned());
        return (ApiError::from(broken).error_response(), None);
    };
    let stored = StoredResponse {
        status,
        content_type,
        body: body.to_vec(),
        // Those that the use case showed, which the unit of work knows.
        tables: Vec::new(),
    };
    (head.set_body(BoxBody::new(body)), Some(stored))
}
