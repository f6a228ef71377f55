//! Errors of use cases.

use labdata_domain::{
    data::write::Problem,
    people::{actor::MissingScope, run_key::ActionRefused},
    refusal::{ErrorCode, NotFound, Overload, Refusal, RefusalKind, Refuse, Resource},
    storage::InsufficientStorage,
};
use labdata_ports::PortError;

/// Seconds after which a request is retried that found something in use for an unknown time.
const RETRY_SECONDS: u32 = 1;

/// Outcome of a use case that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule refused the request; nothing was changed.
    #[error("{0}")]
    Refused(Refusal),
    /// Problems of a data write; nothing was changed.
    #[error("{} problems", .0.len())]
    Problems(Vec<Problem>),
    /// A service behind the platform does not respond; the text is for the log.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The connection broke during the commit, so whether the change was made is not known; the text is
    /// for the log.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
    /// Anything else; the text is for the log.
    #[error("internal: {0}")]
    Internal(String),
}

impl Error {
    /// The refusal for a reason of any area.
    pub fn refused(reason: impl Refuse) -> Self {
        Self::Refused(reason.into())
    }

    /// The refusal for several reasons of one request.
    pub fn refused_for_all(reasons: &[impl Refuse]) -> Self {
        Refusal::of_all(reasons).map_or_else(
            || Self::Internal("a refusal without a reason".to_owned()),
            Self::Refused,
        )
    }

    /// The refusal of a request that names no existing resource.
    #[must_use]
    pub fn not_found(resource: Resource) -> Self {
        Self::refused(NotFound(resource))
    }

    /// The refusal of a request that others' requests keep from its turn.
    #[must_use]
    pub fn busy() -> Self {
        Self::refused(Overload::Busy {
            retry_after_seconds: RETRY_SECONDS,
        })
    }

    /// Returns the kind of a refusal.
    #[must_use]
    pub const fn kind(&self) -> Option<RefusalKind> {
        match self {
            Self::Refused(refusal) => Some(refusal.kind),
            Self::Problems(_) => Some(RefusalKind::Invalid),
            Self::Unavailable(_) | Self::OutcomeUnknown(_) | Self::Internal(_) => None,
        }
    }

    /// Returns the code; `None` for problems, each of which has its own.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            // Each problem has its code.
            Self::Problems(_) => None,
            Self::Unavailable(_) => Some(ErrorCode::Unavailable),
            Self::OutcomeUnknown(_) => Some(ErrorCode::OutcomeUnknown),
            Self::Internal(_) => Some(ErrorCode::Internal),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<MissingScope> for Error {
    fn from(missing: MissingScope) -> Self {
        Self::refused(missing)
    }
}

impl From<ActionRefused> for Error {
    fn from(refusal: ActionRefused) -> Self {
        Self::refused(refusal)
    }
}

impl From<InsufficientStorage> for Error {
    fn from(refusal: InsufficientStorage) -> Self {
        Self::refused(refusal)
    }
}

impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        match error {
            PortError::NotFound(resource) => Self::not_found(resource),
            PortError::Conflict(conflict) => Self::refused(conflict),
            PortError::Busy(_) => Self::busy(),
            PortError::Exhausted(_) => Self::refused(Overload::Exhausted {
                retry_after_seconds: RETRY_SECONDS,
            }),
            PortError::DiskFull(_) => Self::refused(InsufficientStorage::DiskFull),
            PortError::Unavailable(text) => Self::Unavailable(text),
            PortError::OutcomeUnknown(text) => Self::OutcomeUnknown(text),
            PortError::Corrupt(text) | PortError::Internal(text) => Self::Internal(text),
        }
    }
}
