//! Refusals of a platform that is fully in use.

use super::{
    code::ErrorCode,
    reason::{RefusalKind, Refuse},
};

/// Something that the request needs is in use; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overload {
    /// Other requests hold what is needed.
    #[error("busy: try again in {retry_after_seconds} s")]
    Busy {
        /// When to try again.
        retry_after_seconds: u32,
    },
    /// The platform, or the organization's share of it, is fully in use.
    #[error("everything is in use at the moment: try again in {retry_after_seconds} s")]
    Exhausted {
        /// When to try again.
        retry_after_seconds: u32,
    },
}

impl Refuse for Overload {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Busy { .. } => ErrorCode::Busy,
            Self::Exhausted { .. } => ErrorCode::Exhausted,
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::Busy { .. } => RefusalKind::Busy,
            Self::Exhausted { .. } => RefusalKind::Unavailable,
        }
    }

    fn retry_after_seconds(&self) -> Option<u32> {
        let (Self::Busy {
            retry_after_seconds,
        }
        | Self::Exhausted {
            retry_after_seconds,
        }) = self;
        Some(*retry_after_seconds)
    }
}
