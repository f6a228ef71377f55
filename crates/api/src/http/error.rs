//! The mapping from errors to responses.

use std::time::Duration;

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{StatusCode, header},
};
use labdata_application::{Error, agent::AgentError};
use labdata_domain::{
    agent::{ModelFailure, RunRefusal},
    data::write::Problem,
};
use labdata_request_body::{LocationStep, ShapeProblem};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A use case refused or failed.
    #[error(transparent)]
    UseCase(#[from] Error),
    /// The organization may not start a run of the agent now.
    #[error(transparent)]
    AgentRefused(#[from] RunRefusal),
    /// The agent's model gave no usable answer.
    #[error(transparent)]
    Model(#[from] ModelFailure),
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

/// An error that says what happened.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody {
    /// Explanation for people.
    pub detail: String,
}

/// The request does not have the shape that the operation reads.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ShapeError)]
pub struct ShapeErrorBody {
    /// Every problem.
    pub detail: Vec<ShapeProblemView>,
}

/// A problem of a request's shape.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ShapeProblem)]
pub struct ShapeProblemView {
    /// The kind of problem, such as `missing` or `string_type`.
    #[serde(rename = "type")]
    #[schema(example = "missing")]
    kind: String,
    /// Location: `body`, `query`, `path` or `header`, then field names and indices.
    loc: Vec<LocationStepView>,
    /// Explanation for people.
    #[schema(example = "Field required")]
    msg: String,
    /// The value that stands there (long ones are shortened).
    input: Value,
    /// Figures of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ctx: Option<Map<String, Value>>,
}

/// A step of the way to a value.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LocationStep)]
#[serde(untagged)]
pub enum LocationStepView {
    /// `body`, `query`, `path` or `header`, then names of fields.
    Name(String),
    /// The place in a list.
    Index(usize),
}

impl From<LocationStep> for LocationStepView {
    fn from(step: LocationStep) -> Self {
        match step {
            LocationStep::Name(name) => Self::Name(name),
            LocationStep::Index(index) => Self::Index(index),
        }
    }
}

impl From<ShapeProblem> for ShapeProblemView {
    fn from(problem: ShapeProblem) -> Self {
        Self {
            kind: problem.kind,
            loc: problem.loc.into_iter().map(Into::into).collect(),
            msg: problem.msg,
            input: problem.input,
            ctx: problem.ctx,
        }
    }
}

/// The platform failed; the log knows more under the request's id.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InternalError)]
pub struct InternalErrorBody {
    /// Always `internal error`.
    #[schema(example = "internal error")]
    pub detail: String,
    /// The id of the request, also in the header `X-Request-Id`.
    pub request_id: String,
}

/// One thing that is wrong with a data write.
#[derive(Debug, Serialize, ToSchema)]
pub struct WriteDataProblem {
    /// Location, such as `tables[1].rows[0].sample`; null for the whole request.
    #[schema(example = "tables[1].rows[0].sample")]
    pub path: Option<String>,
    /// Explanation, and what to do about it.
    #[schema(example = "there is no sample with the id s9")]
    pub message: String,
}

/// A data write's problems; nothing was written.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WriteDataError)]
pub struct WriteDataErrorBody {
    /// At most 100, and one more that counts the rest.
    pub errors: Vec<WriteDataProblem>,
}

/// A refused write: the problems of its rows and series, or why it cannot take place at all, such as
/// an execution that is closed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WriteRefusal)]
#[serde(untagged)]
pub enum WriteRefusalBody {
    /// Problems of rows and series.
    Problems(WriteDataErrorBody),
    /// Another reason.
    Other(ErrorBody),
}

impl From<Problem> for WriteDataProblem {
    fn from(problem: Problem) -> Self {
        Self {
            path: problem.path,
            message: problem.message,
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Refused(refusal) => refusal.into(),
            AgentError::Model(failure) => failure.into(),
            AgentError::Platform(error) => error.into(),
        }
    }
}

impl ApiError {
    /// Explanation for people, without internals.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::UseCase(Error::Internal(_)) => "internal error".to_owned(),
            Self::UseCase(Error::Unavailable(_)) => {
                "a service that the platform needs does not answer; try again later".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// Cause for the log; never sent to the client.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::UseCase(Error::Internal(cause) | Error::Unavailable(cause)) => Some(cause),
            _ => None,
        }
    }
}

/// `Retry-After` where a service behind the platform does not answer.
pub(crate) const UNAVAILABLE_RETRY_SECONDS: u32 = 5;

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::UseCase(error) => match error {
                Error::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
                Error::Forbidden(_) => StatusCode::FORBIDDEN,
                Error::NotFound(_) | Error::RowNotFound { .. } => StatusCode::NOT_FOUND,
                Error::Invalid(_) | Error::Problems(_) => StatusCode::BAD_REQUEST,
                Error::Conflict(_) => StatusCode::CONFLICT,
                Error::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
                Error::Busy { .. } | Error::Capped(_) | Error::TrainingQueueFull(_) => {
                    StatusCode::TOO_MANY_REQUESTS
                }
                Error::Exhausted { .. }
                | Error::Delayed(_)
                | Error::CannotTrain(_)
                | Error::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
                Error::InsufficientStorage(_) => StatusCode::INSUFFICIENT_STORAGE,
                Error::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            },
            Self::AgentRefused(_) | Self::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Model(_) => StatusCode::BAD_GATEWAY,
            Self::Shape(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::BrokenBody(_) => StatusCode::BAD_REQUEST,
            Self::TimedOut(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.status_code());
        match self {
            Self::Shape(problems) => {
                let detail = problems.iter().cloned().map(Into::into).collect();
                return response.json(ShapeErrorBody { detail });
            }
            Self::UseCase(Error::Problems(problems)) => {
                let errors = problems.iter().cloned().map(Into::into).collect();
                return response.json(WriteDataErrorBody { errors });
            }
            Self::UseCase(Error::Unauthenticated(_)) => {
                response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
            }
            Self::UseCase(
                Error::Busy {
                    retry_after_seconds,
                }
                | Error::Exhausted {
                    retry_after_seconds,
                },
            )
            | Self::TooManyRequests {
                retry_after_seconds,
                ..
            } => {
                response.insert_header((header::RETRY_AFTER, *retry_after_seconds));
            }
            Self::UseCase(Error::Unavailable(_)) | Self::TimedOut(_) => {
                response.insert_header((header::RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS));
            }
            Self::UseCase(Error::Delayed(delay)) => {
                response.insert_header((header::RETRY_AFTER, delay.retry_after_seconds()));
            }
            Self::UseCase(Error::Capped(reached)) => {
                response.insert_header((header::RETRY_AFTER, reached.retry_after_seconds));
            }
            Self::UseCase(Error::TrainingQueueFull(refusal)) => {
                response.insert_header((header::RETRY_AFTER, refusal.retry_after_seconds()));
            }
            Self::AgentRefused(refusal) => {
                response.insert_header((header::RETRY_AFTER, refusal.retry_after_seconds()));
            }
            // `observe` adds the body, because only it knows the request's id.
            Self::UseCase(Error::Internal(_)) => return response.finish(),
            _ => {}
        }
        response.json(ErrorBody {
            detail: self.detail(),
        })
    }
}

#[cfg(test)]
mod tests {
    use labdata_domain::{
        conflict::Conflict,
        models::{NoTrainingBackend, PredictionDelay},
        storage::InsufficientStorage,
    };

    use super::*;

    fn status(error: Error) -> u16 {
        ApiError::from(error).status_code().as_u16()
    }

    #[test]
    fn every_error_of_a_use_case_has_its_status() {
        assert_eq!(status(Error::Unauthenticated("x")), 401);
        assert_eq!(status(Error::Forbidden("x".to_owned())), 403);
        assert_eq!(status(Error::NotFound("job")), 404);
        assert_eq!(status(Error::Invalid("x".to_owned())), 400);
        assert_eq!(status(Error::Problems(Vec::new())), 400);
        assert_eq!(status(Error::Conflict(Conflict::FilePath)), 409);
        assert_eq!(status(Error::TooLarge("x".to_owned())), 413);
        assert_eq!(
            status(Error::Busy {
                retry_after_seconds: 1
            }),
            429
        );
        assert_eq!(status(Error::Unavailable("x".to_owned())), 503);
        assert_eq!(status(NoTrainingBackend::NoWorker.into()), 503);
        assert_eq!(status(InsufficientStorage::DiskFull.into()), 507);
        assert_eq!(status(Error::Internal("x".to_owned())), 500);
    }

    #[test]
    fn a_busy_platform_says_when_to_try_again() {
        let retry_after_seconds = 7;
        for (error, status) in [
            (
                Error::Busy {
                    retry_after_seconds,
                },
                429,
            ),
            (
                Error::Exhausted {
                    retry_after_seconds,
                },
                503,
            ),
        ] {
            let response = ApiError::from(error).error_response();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers().get("retry-after").unwrap(), "7");
        }
        let response = ApiError::from(Error::Unavailable("x".to_owned())).error_response();
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers().get("retry-after").unwrap(), "5");
        let response = ApiError::from(Error::Delayed(PredictionDelay::Busy)).error_response();
        assert_eq!(response.status().as_u16(), 503);
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
    }
}
