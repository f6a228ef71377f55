//! Reasons for which a request is not carried out.

use std::fmt;

use super::code::ErrorCode;

/// Kind of a refusal; drivers such as HTTP turn it into their status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request makes no sense, or the state of what it names does not permit it.
    Invalid,
    /// The caller is not known.
    Unauthenticated,
    /// The caller may not do it.
    Forbidden,
    /// Something that the request names does not exist.
    NotFound,
    /// The request clashes with what is stored.
    Conflict,
    /// A body or a file exceeds a limit of size.
    TooLarge,
    /// The caller's organization has used up its share, or others hold what is needed.
    Busy,
    /// The platform cannot do it now.
    Unavailable,
    /// There is no room to store it.
    InsufficientStorage,
    /// A service outside the platform failed.
    Upstream,
}

/// A reason for which a request is not carried out. Its `Display` is the sentence for people.
pub trait Refuse: fmt::Display {
    /// Stable code of the reason.
    fn code(&self) -> ErrorCode;

    /// Kind of the refusal.
    fn kind(&self) -> RefusalKind {
        RefusalKind::Invalid
    }

    /// Whole seconds after which the request may succeed, if they are known.
    fn retry_after_seconds(&self) -> Option<u32> {
        None
    }
}
