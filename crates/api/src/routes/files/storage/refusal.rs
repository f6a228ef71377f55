//! Why a signed URL was not served, as Google Cloud Storage says it.

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{CONTENT_RANGE, ContentType, RETRY_AFTER},
    },
};
use labdata_application::files::{open_download::SignedUrlError, receive_upload::UploadError};
use labdata_domain::storage::InsufficientStorage;
use labdata_ports::{
    PortError,
    files::blob::{PutBlobError, SignatureError},
};

use crate::http::error::UNAVAILABLE_RETRY_SECONDS;

/// Why a request to a signed URL was refused. The response is XML with a code, as clients of Google
/// Cloud Storage know it.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The size of an object of which no byte is in the range that was asked for.
    unsatisfied: Option<u64>,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            unsatisfied: None,
        }
    }

    /// The body is longer than was signed.
    #[must_use]
    pub fn too_large(limit: u64) -> Self {
        let message =
            format!("Your proposed upload exceeds the maximum object size of {limit} bytes.");
        Self::new(StatusCode::BAD_REQUEST, "EntityTooLarge", message)
    }

    /// The range lies behind the object's end.
    #[must_use]
    pub fn range(size: u64) -> Self {
        let message = "The requested range cannot be satisfied.";
        Self {
            unsatisfied: Some(size),
            ..Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange", message)
        }
    }
}

impl From<SignatureError> for Refusal {
    fn from(error: SignatureError) -> Self {
        match error {
            SignatureError::Mismatch => Self::new(
                StatusCode::FORBIDDEN,
                "SignatureDoesNotMatch",
                "Access denied: the signature does not match the request.",
            ),
            SignatureError::Expired => Self::new(
                StatusCode::BAD_REQUEST,
                "ExpiredToken",
                "The provided token has expired: request a fresh URL.",
            ),
            SignatureError::MissingHeader(name) => Self::new(
                StatusCode::BAD_REQUEST,
                "MalformedSecurityHeader",
                format!("A header that was signed is missing: {name}"),
            ),
        }
    }
}

impl From<InsufficientStorage> for Refusal {
    fn from(refusal: InsufficientStorage) -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "InsufficientStorage",
            refusal.to_string(),
        )
    }
}

impl From<PortError> for Refusal {
    fn from(error: PortError) -> Self {
        match error {
            PortError::NotFound(_) => Self::new(
                StatusCode::NOT_FOUND,
                "NoSuchKey",
                "The specified key does not exist.",
            ),
            PortError::DiskFull(_) => InsufficientStorage::DiskFull.into(),
            PortError::Unavailable(_) | PortError::Busy(_) | PortError::Exhausted(_) => {
                tracing::error!(%error, "a signed URL was not served");
                let message = "The storage does not respond; try again later.";
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "ServiceUnavailable",
                    message,
                )
            }
            error => {
                tracing::error!(%error, "a signed URL was not served");
                let message = "We encountered an internal error.";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            }
        }
    }
}

impl From<SignedUrlError> for Refusal {
    fn from(error: SignedUrlError) -> Self {
        match error {
            SignedUrlError::Refused(error) => error.into(),
            SignedUrlError::Port(error) => error.into(),
        }
    }
}

impl From<UploadError> for Refusal {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::UnderWay => Self::new(
                StatusCode::CONFLICT,
                "ConditionalRequestConflict",
                "Another upload to this URL is under way: wait for its end, or request a fresh URL.",
            ),
            UploadError::InsufficientStorage(refusal) => refusal.into(),
            UploadError::Blob(error) => error.into(),
        }
    }
}

impl From<PutBlobError> for Refusal {
    fn from(error: PutBlobError) -> Self {
        match error {
            PutBlobError::Exists => Self::new(
                StatusCode::PRECONDITION_FAILED,
                "PreconditionFailed",
                "At least one of the pre-conditions you specified did not hold.",
            ),
            PutBlobError::TooLarge { limit } => Self::too_large(limit),
            PutBlobError::Body(broken) => Self::new(
                StatusCode::BAD_REQUEST,
                "IncompleteBody",
                broken.to_string(),
            ),
            PutBlobError::Port(error) => error.into(),
        }
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        response.insert_header(ContentType::xml());
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header((RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS));
        }
        if let Some(size) = self.unsatisfied {
            response.insert_header((CONTENT_RANGE, format!("bytes */{size}")));
        }
        let message = self
            .message
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        response.body(format!(
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{}</Code><Message>{message}\
             </Message></Error>",
            self.code,
        ))
    }
}
