//! Problems of a data write, each with its path in the request.

use crate::catalog::Violation;

/// Maximum number of problems reported one by one (specification, "Limits").
pub const MAX_PROBLEMS: usize = 100;

/// Maximum number of characters of a caller's text that a message repeats.
const MAX_QUOTED: usize = 100;

/// One problem of a data write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path such as `tables[1].rows[0].sample`; `None` if the problem concerns the whole request.
    pub path: Option<String>,
    /// Cause, and the fix if there is one.
    pub message: String,
}

impl Problem {
    /// A problem at a path.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: Some(path.into()),
            message: message.into(),
        }
    }

    /// A problem of the whole request.
    pub fn of_the_request(message: impl Into<String>) -> Self {
        Self {
            path: None,
            message: message.into(),
        }
    }

    /// The problem of a write under an execution with that final status.
    #[must_use]
    pub fn execution_ended(status: &str) -> Self {
        Self::at(
            "job_execution_id",
            format!("this execution is {status} and accepts no writes"),
        )
    }

    /// The first 100 problems of a list in request order; a last one counts the rest.
    #[must_use]
    pub fn first_of(mut problems: Vec<Self>) -> Vec<Self> {
        let left_out = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        problems.extend(Self::rest(left_out));
        problems
    }

    /// A problem that counts those left out; `None` if there are none.
    pub(super) fn rest(left_out: usize) -> Option<Self> {
        (left_out > 0).then(|| Self::of_the_request(format!("and {left_out} more problems")))
    }
}

impl From<Violation> for Problem {
    fn from(violation: Violation) -> Self {
        Self::of_the_request(violation.to_string())
    }
}

/// The first characters of a caller's text, for messages.
pub(in crate::data) fn quoted(text: &str) -> String {
    text.chars().take(MAX_QUOTED).collect()
}

/// Message for a required column that a created row leaves out.
pub(super) fn missing_column(name: &str) -> String {
    format!("the required column \"{name}\" is missing")
}
