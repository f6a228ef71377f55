//! Refusals: why a request is not carried out, with a stable code and a sentence for people.

mod code;
mod overload;
mod reason;
mod resource;

use std::{borrow::Cow, fmt};

pub use code::ErrorCode;
pub use overload::Overload;
pub use reason::{RefusalKind, Refuse};
pub use resource::{KeyNotFound, NotFound, Resource};

/// A refusal of any area. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// Its stable code.
    pub code: ErrorCode,
    /// The sentence for people.
    pub message: Cow<'static, str>,
    /// Whole seconds after which the request may succeed, if they are known.
    pub retry_after_seconds: Option<u32>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<R: Refuse> From<R> for Refusal {
    fn from(reason: R) -> Self {
        Self {
            kind: reason.kind(),
            code: reason.code(),
            message: reason.to_string().into(),
            retry_after_seconds: reason.retry_after_seconds(),
        }
    }
}

impl Refusal {
    /// The refusal of an invalid request.
    pub fn invalid(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: RefusalKind::Invalid,
            code,
            message: message.into(),
            retry_after_seconds: None,
        }
    }

    /// Joins the reasons of one request in a sentence. The first one gives the code.
    ///
    /// Returns `None` for no reasons.
    #[must_use]
    pub fn of_all<R: Refuse>(reasons: &[R]) -> Option<Self> {
        // A response has one status and one code; the other reasons are only in the message.
        let first = reasons.first()?;
        let sentences: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        Some(Self {
            kind: first.kind(),
            code: first.code(),
            message: sentences.join("; ").into(),
            retry_after_seconds: first.retry_after_seconds(),
        })
    }

    /// The same refusal, of the part of the request that `part` names.
    #[must_use]
    pub fn within(mut self, part: impl fmt::Display) -> Self {
        self.message = format!("{part}{}", self.message).into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_code_and_the_sentence_of_its_reason() {
        let refusal = Refusal::from(NotFound(Resource::Model));
        assert_eq!(refusal.kind, RefusalKind::NotFound);
        assert_eq!(refusal.code, ErrorCode::NotFound);
        assert_eq!(refusal.to_string(), "ML model not found");
        let refusal = Refusal::from(Overload::Busy {
            retry_after_seconds: 7,
        });
        assert_eq!(refusal.retry_after_seconds, Some(7));
    }

    #[test]
    fn several_reasons_make_one_sentence() {
        let reasons = [NotFound(Resource::Job), NotFound(Resource::File)];
        let refusal = Refusal::of_all(&reasons).unwrap().within("inputs: ");
        assert_eq!(refusal.message, "inputs: job not found; file not found");
        assert_eq!(Refusal::of_all::<NotFound>(&[]), None);
    }
}
