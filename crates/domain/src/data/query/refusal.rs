//! Refusals of queries.

use crate::refusal::{ErrorCode, Refuse};

/// Reason why a query is refused, displayed to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub(super) String);

impl Refuse for Refusal {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidQuery
    }
}

impl Refusal {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
