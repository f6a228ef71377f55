//! Problems of a data write, each with its path in the request.

use crate::{
    catalog::{ViolatedKey, Violation},
    refusal::ErrorCode,
};

/// Maximum number of problems reported one by one (specification, "Limits").
pub const MAX_PROBLEMS: usize = 100;

/// Maximum number of characters of a caller's text that a message repeats.
const MAX_QUOTED: usize = 100;

/// Reason of a problem: a stable code and the sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The code.
    pub code: ErrorCode,
    /// Cause, and the fix if there is one.
    pub message: String,
}

impl Reason {
    /// Creates a reason.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Self::new(ErrorCode::InvalidValue, message)
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// One problem of a data write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path such as `tables[1].rows[0].sample`; `None` if the problem concerns the whole request.
    pub path: Option<String>,
    /// Stable code of the reason.
    pub code: ErrorCode,
    /// Cause, and the fix if there is one.
    pub message: String,
    /// The values that occur twice where they must be unique.
    pub repeated: Option<Box<ViolatedKey>>,
}

impl Problem {
    /// A problem at a path.
    pub fn at(path: impl Into<String>, reason: impl Into<Reason>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::of_the_request(reason)
        }
    }

    /// A problem of the whole request.
    pub fn of_the_request(reason: impl Into<Reason>) -> Self {
        let Reason { code, message } = reason.into();
        Self {
            path: None,
            code,
            message,
            repeated: None,
        }
    }

    /// The problem of a write under an execution with that final status.
    #[must_use]
    pub fn execution_ended(status: &str) -> Self {
        Self::at(
            "job_execution_id",
            Reason::new(
                ErrorCode::ExecutionClosed,
                format!("this execution is {status} and accepts no writes"),
            ),
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
        (left_out > 0).then(|| {
            let message = format!("and {left_out} more problems");
            Self::of_the_request(Reason::new(ErrorCode::MoreProblems, message))
        })
    }
}

impl From<Violation> for Problem {
    fn from(violation: Violation) -> Self {
        let code = match &violation {
            Violation::Repeated(_) => ErrorCode::UniqueViolation,
            Violation::Dangling(_) => ErrorCode::ForeignKeyViolation,
            Violation::Null { .. } => ErrorCode::MissingValue,
            Violation::Other { .. } => ErrorCode::ConstraintViolation,
            Violation::Limit { .. } => ErrorCode::ValueTooLarge,
        };
        let problem = Self::of_the_request(Reason::new(code, violation.to_string()));
        match violation {
            Violation::Repeated(key) => Self {
                repeated: Some(Box::new(key)),
                ..problem
            },
            _ => problem,
        }
    }
}

/// The first characters of a caller's text, for messages.
pub(in crate::data) fn quoted(text: &str) -> String {
    text.chars().take(MAX_QUOTED).collect()
}

/// Reason for a column that the table of that name lacks.
pub(super) fn no_column(table: &str, name: &str) -> Reason {
    Reason::new(
        ErrorCode::UnknownColumn,
        format!("\"{table}\" has no column \"{}\"", quoted(name)),
    )
}

/// Reason for a required column that a created row leaves out.
pub(super) fn missing_column(name: &str) -> Reason {
    Reason::new(
        ErrorCode::MissingValue,
        format!("the required column \"{name}\" is missing"),
    )
}

/// Reason for a null where the column is not nullable.
pub(super) fn must_not_be_null() -> Reason {
    Reason::new(ErrorCode::MissingValue, "must not be null")
}
