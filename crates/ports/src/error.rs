//! Why a port did not do what it was asked.

use labdata_domain::{conflict::Conflict, refusal::Resource};

/// An error of a port that a caller can act on.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// No such thing in this organization.
    #[error("{0} not found")]
    NotFound(Resource),
    /// It clashes with what is stored.
    #[error(transparent)]
    Conflict(Conflict),
    /// Others hold what is needed; nothing was changed, and a later try may succeed.
    #[error("busy: {0}")]
    Busy(String),
    /// Everything that could do the work stays in use; nothing was changed, and a later try may succeed.
    #[error("exhausted: {0}")]
    Exhausted(String),
    /// The disk behind the port is full; nothing was changed, and a later try may succeed.
    #[error("disk full: {0}")]
    DiskFull(String),
    /// The service behind the port does not respond; nothing was changed.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The connection broke during the commit: whether the change was made is not known, so the caller
    /// MUST NOT repeat it unasked.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
    /// A stored value is invalid; the text names table, column and id.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Anything else; for the log, never for the person who asked.
    #[error("internal: {0}")]
    Internal(String),
}
