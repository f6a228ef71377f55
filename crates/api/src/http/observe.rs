//! Middleware around every request: request id, log line, metrics, and a body for errors that
//! have none.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use actix_web::{
    HttpResponse, ResponseError,
    body::{self, BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method, StatusCode,
        header::{CONTENT_TYPE, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};
use futures::FutureExt;
use labdata_application::{Error, maintenance::new_request_id::new_request_id};
use labdata_domain::{people::actor::Actor, refusal::ErrorCode};
use labdata_limits::{PATIENCE, waiting::with_budget};
use tokio::time::timeout;
use tracing::{
    Instrument, Span,
    field::{Empty, display},
};

use super::{
    ApiError,
    body::is_json,
    error::body_of_status,
    paced::Paced,
    security_headers::{self, ContentPolicy},
};
use crate::app::App;

/// Header with the request's id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id that a client may choose.
const MAX_ID_LENGTH: usize = 128;

/// Handles a request inside a span with its id.
///
/// # Errors
/// When a handler panics or takes too long; the error is the response.
pub async fn observe(
    app: Data<App>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let started = Instant::now();
    let id = request_id(&request, &app);
    let method = request.method().clone();
    // Without the query string: signed URLs have their signature in it.
    let path = loggable(request.path());
    let is_private = security_headers::is_private(request.headers());
    let span = tracing::info_span!(
        "request",
        request_id = %id,
        %method,
        path,
        route = Empty,
        status = Empty,
        organization = Empty,
        api_key = Empty,
    );
    let limit = if receives_file(&request) {
        Duration::MAX
    } else {
        app.request_timeout
    };
    // A panic would otherwise end the connection without a response.
    let handled = AssertUnwindSafe(async move { next.call(request).await }).catch_unwind();
    // For the key's connection and the operation's together (contract §3).
    let handled = with_budget(PATIENCE, handled);
    // Dropping the handler cancels its queries and returns its connections.
    let answered = timeout(limit, handled.instrument(span.clone())).await;
    // No await follows: an entered span must not be held across one.
    let _entered = span.enter();
    let unanswered = |route: &str, failure: Failure| {
        let (status, request_id) = (failure.status(), id.clone());
        note(&app, &method, route, status, started.elapsed());
        Err(Unanswered {
            failure,
            request_id,
            is_private,
        }
        .into())
    };
    match answered {
        Ok(Ok(Ok(response))) => {
            let response = without_stream(&method, response.map_into_boxed_body());
            let response = finish(response, &id, is_private, &app.content_policy);
            let response = response.map_body(|_, body| Paced::of(body, app.stall));
            let route = response.request().match_pattern();
            let route = route.as_deref().unwrap_or("unmatched");
            note(&app, &method, route, response.status(), started.elapsed());
            Ok(response)
        }
        Ok(Ok(Err(error))) => {
            tracing::error!(%error, "the request could not be handled");
            unanswered("unmatched", Failure::Internal)
        }
        Ok(Err(panic)) => {
            tracing::error!(panic = panic_text(&*panic), "a handler panicked");
            unanswered("panicked", Failure::Internal)
        }
        Err(_) => {
            tracing::error!("a request was given up, as it took too long");
            unanswered("timed out", Failure::TimedOut(app.request_timeout))
        }
    }
}

/// Returns true for a request with a file, whose body takes the time that its client's network needs.
fn receives_file(request: &ServiceRequest) -> bool {
    match request.headers().get(CONTENT_TYPE) {
        // The time limit would otherwise bound the size of an upload by the client's bandwidth.
        Some(content_type) => !content_type.to_str().is_ok_and(is_json),
        None => request.method() == Method::PUT,
    }
}

/// Adds the caller to the request's span, and so to each of its log lines.
pub(super) fn record_actor(actor: &Actor) {
    let span = Span::current();
    span.record("organization", display(actor.organization));
    span.record("api_key", display(actor.api_key));
}

/// Returns the client's id if it is short and safe to log, else a new one.
fn request_id(request: &ServiceRequest, app: &App) -> String {
    let displayed = request
        .headers()
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let sane = |id: &&str| {
        !id.is_empty()
            && id.len() <= MAX_ID_LENGTH
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
    };
    displayed
        .filter(sane)
        .map_or_else(|| new_request_id(&app.services).to_string(), str::to_owned)
}

/// Paths below these end in a secret, which the log must not hold.
const SECRET_PATHS: [&str; 1] = ["/unsubscribe/"];

/// The path as it may be logged.
fn loggable(path: &str) -> String {
    let secret = SECRET_PATHS
        .iter()
        .find(|prefix| path.starts_with(**prefix));
    secret.map_or_else(|| path.to_owned(), |prefix| format!("{prefix}…"))
}

/// Drops the stream that a HEAD request would be answered with. The server would read it to its end before
/// it took the next request of the connection.
fn without_stream(method: &Method, response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    if method == Method::HEAD && response.response().body().size() == BodySize::Stream {
        response.map_body(|_, _| BoxBody::new(body::None::new()))
    } else {
        response
    }
}

/// Adds the headers of every response, and a body to an error without one.
fn finish(
    response: ServiceResponse<BoxBody>,
    id: &str,
    is_private: bool,
    policy: &ContentPolicy,
) -> ServiceResponse<BoxBody> {
    let status = response.status();
    let mut response = if status == StatusCode::INTERNAL_SERVER_ERROR {
        // Here, inside the span, so that the line has the id that the client gets.
        log_cause(&response);
        let error = response.response().error();
        let code = match error.and_then(|error| error.as_error::<ApiError>()) {
            Some(ApiError::UseCase(Error::OutcomeUnknown(_))) => ErrorCode::OutcomeUnknown,
            _ => ErrorCode::Internal,
        };
        with_body(response, internal_error(code, id))
    } else if (status.is_client_error() || status.is_server_error())
        && matches!(
            response.response().body().size(),
            BodySize::None | BodySize::Sized(0)
        )
    {
        let body = HttpResponse::build(status).json(body_of_status(status));
        with_body(response, body)
    } else {
        if status == StatusCode::SERVICE_UNAVAILABLE {
            log_cause(&response);
        }
        response
    };
    insert_id(response.response_mut(), id);
    security_headers::add(response.response_mut().headers_mut(), is_private, policy);
    response
}

/// Replaces the body and its headers, and retains all other headers.
fn with_body(response: ServiceResponse<BoxBody>, body: HttpResponse) -> ServiceResponse<BoxBody> {
    let (request, old) = response.into_parts();
    let mut body = body;
    for (name, value) in old.headers() {
        // `Retry-After`, `Allow` and the like stay; type and length are those of the new body.
        if !body.headers().contains_key(name) {
            body.headers_mut().append(name.clone(), value.clone());
        }
    }
    ServiceResponse::new(request, body)
}

fn internal_error(code: ErrorCode, id: &str) -> HttpResponse {
    HttpResponse::InternalServerError().json(labdata_operations::errors::InternalErrorBody {
        detail: "internal error".to_owned(),
        code,
        request_id: id.to_owned(),
    })
}

fn insert_id(response: &mut HttpResponse, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
}

fn log_cause(response: &ServiceResponse<BoxBody>) {
    let Some(error) = response.response().error() else {
        return;
    };
    let cause = error.as_error::<ApiError>().and_then(ApiError::cause);
    let cause = cause.map_or_else(|| error.to_string(), str::to_owned);
    tracing::error!(cause, "the request failed");
}

fn note(app: &App, method: &Method, route: &str, status: StatusCode, took: Duration) {
    app.metrics.record_request(method, route, status, took);
    Span::current()
        .record("route", route)
        .record("status", status.as_u16());
    let (status, took) = (
        status.as_u16(),
        format!("{:.1}", took.as_secs_f64() * 1000.0),
    );
    // Probes arrive every few seconds and would hide other lines.
    if matches!(route, "/healthz" | "/readyz" | "/metrics") {
        tracing::debug!(status, milliseconds = took, "answered");
    } else {
        tracing::info!(status, milliseconds = took, "answered");
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}

/// Why a handler gave no response.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// It panicked, or failed before it began.
    Internal,
    /// It took longer than that.
    TimedOut(Duration),
}

impl Failure {
    const fn status(self) -> StatusCode {
        match self {
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::TimedOut(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Response to a request whose handler gave none.
#[derive(Debug, thiserror::Error)]
#[error("the request has no response")]
struct Unanswered {
    failure: Failure,
    request_id: String,
    is_private: bool,
}

impl ResponseError for Unanswered {
    fn error_response(&self) -> HttpResponse {
        let mut response = match self.failure {
            Failure::Internal => internal_error(ErrorCode::Internal, &self.request_id),
            Failure::TimedOut(limit) => ApiError::TimedOut(limit).error_response(),
        };
        insert_id(&mut response, &self.request_id);
        // It is no page, and sends nothing anywhere.
        let policy = ContentPolicy::default();
        security_headers::add(response.headers_mut(), self.is_private, &policy);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_that_ends_in_a_token_is_logged() {
        let endpoints = crate::routes::all();
        let secret = endpoints.iter().filter(|it| it.path.contains("{token}"));
        let logged: Vec<String> = secret
            .map(|it| loggable(&it.path.replace("{token}", "hunter2")))
            .collect();
        assert!(!logged.is_empty());
        assert!(
            logged.iter().all(|path| !path.contains("hunter2")),
            "{logged:?}"
        );
        assert_eq!(loggable("/api/v1/jobs/1"), "/api/v1/jobs/1");
    }
}
