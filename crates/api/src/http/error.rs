//! The mapping from errors to responses.

use std::time::Duration;

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
};
use labdata_application::{Error, agent::AgentError};
use labdata_domain::{
    idempotency::StoredResponse,
    refusal::{ErrorCode, Refusal, RefusalKind},
};
use labdata_operations::errors::{ErrorBody, ShapeErrorBody, WriteDataErrorBody};
use labdata_request_body::{ProblemKind, ShapeProblem};
use serde_json::json;

/// Header of a replayed response.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Result of a handler: a response, or an error that is mapped to one.
pub type ApiResult<T> = Result<T, ApiError>;

/// Outcome of a request that ends its handler early.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The request has had its effect: this was the response.
    #[error("the request ran before")]
    Replayed(StoredResponse),
    /// A use case refused or failed.
    #[error(transparent)]
    UseCase(#[from] Error),
    /// The request does not fit the endpoint's shape.
    #[error("{} problems of shape", .0.len())]
    Shape(Vec<ShapeProblem>),
    /// The body is of a type that the endpoint does not read.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// The client accepts no form of the response.
    #[error("{0}")]
    NotAcceptable(String),
    /// Reading the body failed.
    #[error("{0}")]
    BrokenBody(String),
    /// The body exceeds the operation's limit in bytes.
    #[error("the request body must be smaller than {0} bytes")]
    BodyTooLarge(usize),
    /// A message in the body holds more values than that.
    #[error("a message holds at most {0} values")]
    TooManyValues(usize),
    /// A file in the body exceeds the operation's limit in bytes.
    #[error("the file must have at most {0} bytes")]
    FilePartTooLarge(usize),
    /// The API key sent too many requests; nothing was done.
    #[error(
        "this API key sent more than {per_minute} requests per minute: \
         try again in {retry_after_seconds} s"
    )]
    TooManyRequests {
        /// Maximum number of requests per minute.
        per_minute: u32,
        /// When to try again.
        retry_after_seconds: u32,
    },
    /// The request took longer than that, and was given up.
    #[error(
        "the request took longer than {} s and was given up; whether it had an effect is not known: \
         ask for less, or send it again with its Idempotency-Key (LABDATA_REQUEST_TIMEOUT_SECONDS)",
        .0.as_secs()
    )]
    TimedOut(Duration),
    /// The body did not arrive in time.
    #[error("the request body did not arrive in time")]
    SlowBody,
}

/// Creates the body of an error that the HTTP server found outside of handlers.
#[must_use]
pub fn body_of_status(status: StatusCode) -> ErrorBody {
    let code = match status {
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
        StatusCode::NOT_ACCEPTABLE => ErrorCode::NotAcceptable,
        StatusCode::REQUEST_TIMEOUT => ErrorCode::BodyTimeout,
        StatusCode::PRECONDITION_FAILED => ErrorCode::PreconditionFailed,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::BodyTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::UnsupportedMediaType,
        StatusCode::RANGE_NOT_SATISFIABLE => ErrorCode::RangeNotSatisfiable,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::Unavailable,
        status if status.is_client_error() => ErrorCode::BodyUnreadable,
        _ => ErrorCode::Internal,
    };
    ErrorBody::new(code, status.canonical_reason().unwrap_or("Error"))
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Refused(refusal) => Error::refused(refusal).into(),
            AgentError::Model(failure) => Error::refused(failure).into(),
            AgentError::Failed(failure) => Error::refused(failure).into(),
            AgentError::Platform(error) => error.into(),
        }
    }
}

impl ApiError {
    /// Explanation for people, without internals.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            // Causes name tables, hosts and paths.
            Self::UseCase(Error::Internal(_)) => "internal error".to_owned(),
            Self::UseCase(Error::Unavailable(_)) => {
                "a service that the platform needs does not respond; try again later".to_owned()
            }
            Self::UseCase(Error::OutcomeUnknown(_)) => {
                "the connection to the database broke during the commit, so whether the request had \
                 an effect is not known: look before you send it again, or send it with the \
                 Idempotency-Key that it had"
                    .to_owned()
            }
            other => other.to_string(),
        }
    }

    /// Stable reason; `None` for problems of shape, each of which has its own kind, and for
    /// no error.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        Some(match self {
            Self::UseCase(Error::Refused(refusal)) => refusal.code,
            Self::UseCase(Error::Problems(_)) => ErrorCode::InvalidWrite,
            Self::UseCase(Error::Unavailable(_)) => ErrorCode::Unavailable,
            Self::UseCase(Error::OutcomeUnknown(_)) => ErrorCode::OutcomeUnknown,
            Self::UseCase(Error::Internal(_)) => ErrorCode::Internal,
            Self::Shape(_) | Self::Replayed(_) => return None,
            Self::UnsupportedMediaType(_) => ErrorCode::UnsupportedMediaType,
            Self::NotAcceptable(_) => ErrorCode::NotAcceptable,
            Self::BrokenBody(_) => ErrorCode::BodyUnreadable,
            Self::BodyTooLarge(_) | Self::TooManyValues(_) | Self::FilePartTooLarge(_) => {
                ErrorCode::BodyTooLarge
            }
            Self::TooManyRequests { .. } => ErrorCode::RateLimited,
            Self::TimedOut(_) => ErrorCode::TimedOut,
            Self::SlowBody => ErrorCode::BodyTimeout,
        })
    }

    /// Seconds after which the client may try again, for the header `Retry-After`.
    const fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::UseCase(Error::Refused(refusal)) => refusal.retry_after_seconds,
            Self::UseCase(Error::Unavailable(_)) | Self::TimedOut(_) => {
                Some(UNAVAILABLE_RETRY_SECONDS)
            }
            Self::TooManyRequests {
                retry_after_seconds,
                ..
            } => Some(*retry_after_seconds),
            _ => None,
        }
    }

    /// Cause for the log; never sent to the client.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::UseCase(
                Error::Internal(cause) | Error::Unavailable(cause) | Error::OutcomeUnknown(cause),
            ) => Some(cause),
            _ => None,
        }
    }
}

/// `Retry-After` where a service behind the platform does not respond.
pub(crate) const UNAVAILABLE_RETRY_SECONDS: u32 = 5;

/// The status of each kind of refusal.
const fn status_of(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::Invalid => StatusCode::BAD_REQUEST,
        RefusalKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::Conflict => StatusCode::CONFLICT,
        RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalKind::Busy => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::InsufficientStorage => StatusCode::INSUFFICIENT_STORAGE,
        RefusalKind::Upstream => StatusCode::BAD_GATEWAY,
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Replayed(response) => StatusCode::from_u16(response.status).unwrap_or_default(),
            Self::UseCase(Error::Refused(refusal)) if is_of_fields(refusal) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::UseCase(Error::Refused(refusal)) => status_of(refusal.kind),
            Self::UseCase(Error::Problems(_)) | Self::BrokenBody(_) => StatusCode::BAD_REQUEST,
            Self::UseCase(Error::Internal(_) | Error::OutcomeUnknown(_)) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::UseCase(Error::Unavailable(_)) | Self::TimedOut(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Shape(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::BodyTooLarge(_) | Self::TooManyValues(_) | Self::FilePartTooLarge(_) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.status_code());
        if let Some(seconds) = self.retry_after_seconds() {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        match self {
            Self::Replayed(response) => return replayed(response),
            Self::Shape(problems) => {
                let detail = problems.clone();
                return response.json(ShapeErrorBody { detail });
            }
            Self::UseCase(Error::Refused(refusal)) if is_of_fields(refusal) => {
                let kind = ProblemKind::value_error(&refusal.message);
                let input = json!({ "job_execution_id": null, "instrument_id": null });
                let detail = vec![ShapeProblem::of_fields(kind, input)];
                return response.json(ShapeErrorBody { detail });
            }
            Self::UseCase(Error::Problems(problems)) => {
                let errors = problems.iter().cloned().map(Into::into).collect();
                let code = ErrorCode::InvalidWrite;
                return response.json(WriteDataErrorBody { errors, code });
            }
            Self::UseCase(Error::Refused(refusal))
                if refusal.kind == RefusalKind::Unauthenticated =>
            {
                // RFC 9110 requires a challenge with 401.
                response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
            }
            // `observe` adds the body, because only it knows the request's id.
            Self::UseCase(Error::Internal(_) | Error::OutcomeUnknown(_)) => {
                return response.finish();
            }
            _ => {}
        }
        let code = self.code().unwrap_or(ErrorCode::Internal);
        response.json(ErrorBody::new(code, self.detail()))
    }
}

/// Returns whether it is a problem of the body's fields that depends on the caller: an upload with a run's key needs
/// neither an execution nor an instrument.
fn is_of_fields(refusal: &Refusal) -> bool {
    refusal.code == ErrorCode::UploadUnattributed
}

/// The response of an earlier request.
fn replayed(stored: &StoredResponse) -> HttpResponse {
    let status = StatusCode::from_u16(stored.status).unwrap_or_default();
    let mut response = HttpResponse::build(status);
    response.insert_header((IDEMPOTENT_REPLAYED, HeaderValue::from_static("true")));
    if !stored.content_type.is_empty() {
        response.insert_header((header::CONTENT_TYPE, stored.content_type.as_str()));
    }
    response.body(stored.body.clone())
}

#[cfg(test)]
mod tests {
    use labdata_domain::{
        conflict::Conflict,
        files::FileRefusal,
        models::{NoTrainingBackend, PredictionDelay},
        people::{actor::MissingScope, credential::InvalidCredential, scope::Scope},
        refusal::{Overload, Refusal, Resource},
        storage::InsufficientStorage,
    };

    use super::*;

    fn status(error: Error) -> u16 {
        ApiError::from(error).status_code().as_u16()
    }

    #[test]
    fn every_error_of_a_use_case_has_its_status() {
        let invalid = Refusal::invalid(ErrorCode::InvalidName, "x");
        assert_eq!(status(Error::refused(InvalidCredential::Key)), 401);
        assert_eq!(status(Error::refused(MissingScope(Scope::Read))), 403);
        assert_eq!(status(Error::not_found(Resource::Job)), 404);
        assert_eq!(status(invalid.into()), 400);
        assert_eq!(status(Error::Problems(Vec::new())), 400);
        assert_eq!(status(Error::refused(Conflict::FilePath)), 409);
        assert_eq!(status(Error::refused(FileRefusal::BodyTooLarge(1))), 413);
        assert_eq!(status(Error::busy()), 429);
        assert_eq!(status(Error::Unavailable("x".to_owned())), 503);
        assert_eq!(status(Error::refused(NoTrainingBackend::NoWorker)), 503);
        assert_eq!(status(InsufficientStorage::DiskFull.into()), 507);
        assert_eq!(status(Error::Internal("x".to_owned())), 500);
        assert_eq!(status(Error::OutcomeUnknown("x".to_owned())), 500);
    }

    #[test]
    fn an_unknown_outcome_says_so_and_invites_no_retry() {
        let error = ApiError::from(Error::OutcomeUnknown("10.0.0.1 broke".to_owned()));
        assert_eq!(error.code(), Some(ErrorCode::OutcomeUnknown));
        assert!(!error.detail().contains("10.0.0.1"), "{}", error.detail());
        let response = error.error_response();
        assert_eq!(response.status(), 500);
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn a_busy_platform_says_when_to_try_again() {
        let retry_after_seconds = 7;
        for (overload, status) in [
            (
                Overload::Busy {
                    retry_after_seconds,
                },
                429,
            ),
            (
                Overload::Exhausted {
                    retry_after_seconds,
                },
                503,
            ),
        ] {
            let response = ApiError::from(Error::refused(overload)).error_response();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers().get("retry-after").unwrap(), "7");
        }
        let response = ApiError::from(Error::Unavailable("x".to_owned())).error_response();
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers().get("retry-after").unwrap(), "5");
        let response = ApiError::from(Error::refused(PredictionDelay::Busy)).error_response();
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
    }
}
