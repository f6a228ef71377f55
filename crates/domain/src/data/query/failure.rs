//! Failures of queries, in words for their authors.

use std::{fmt, time::Duration};

use super::refusal::Refusal;
use crate::{
    models::MAX_DATASET_ROWS,
    numbers::grouped,
    refusal::{ErrorCode, Refuse},
};

/// Limits of one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Maximum run time.
    pub time: Duration,
    /// Maximum number of rows of its result.
    pub rows: usize,
    /// Maximum number of bytes of its result, rendered.
    pub bytes: usize,
}

/// Limits of one query of a client.
pub const QUERY_LIMITS: QueryLimits = QueryLimits {
    time: Duration::from_secs(15),
    rows: 10_000,
    bytes: 16 << 20,
};

/// Limits of a query whose result is sent as a file while it is read.
pub const STREAM_LIMITS: QueryLimits = QueryLimits {
    time: Duration::from_mins(2),
    rows: 10_000_000,
    bytes: 2 << 30,
};

/// Limits of a query whose result is an input of a Python snippet.
pub const PYTHON_QUERY_LIMITS: QueryLimits = QueryLimits {
    rows: 200_000,
    bytes: 32 << 20,
    ..QUERY_LIMITS
};

/// Limits of a query whose result becomes a dataset.
pub const SNAPSHOT_LIMITS: QueryLimits = QueryLimits {
    time: Duration::from_mins(5),
    rows: MAX_DATASET_ROWS,
    bytes: 4 << 30,
};

/// Maximum size of one row of a result in bytes, rendered.
pub const MAX_ROW_BYTES: usize = 16 << 20;

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryFailure {
    /// The query is refused before it runs.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It ran for longer than the limit.
    #[error("the query took longer than {} s and was cancelled", .0.time.as_secs_f64())]
    TooSlow(QueryLimits),
    /// Its result has more rows than the limit.
    #[error(
        "the result has more than {} rows: aggregate, filter, or add a LIMIT",
        grouped(.0.rows)
    )]
    TooManyRows(QueryLimits),
    /// Its result has more bytes than the limit.
    #[error(
        "the result is larger than {} MiB: select fewer columns or rows, or aggregate",
        .0.bytes >> 20
    )]
    TooLarge(QueryLimits),
    /// A row has more than [`MAX_ROW_BYTES`].
    #[error(
        "a row of the result is larger than {} MiB: select fewer columns",
        MAX_ROW_BYTES >> 20
    )]
    RowTooLarge,
    /// The server does not accept a text of its length.
    #[error("the query is too large")]
    TooLong,
    /// The server's stack does not suffice for it.
    #[error("the query is nested too deeply")]
    TooDeep,
    /// The server's memory does not suffice for it.
    #[error("the query needs too much memory")]
    TooMuchMemory,
    /// The server's temporary space does not suffice for it.
    #[error("the query needs too much temporary space")]
    TooMuchTemporarySpace,
    /// The server failed while it ran the query.
    #[error("the database cannot run this query")]
    Unrunnable,
    /// The server found an error in it.
    #[error("{0}")]
    Database(DatabaseMessage),
    /// The platform cannot create the roles that isolate queries.
    #[error(
        "queries are switched off: they run as a database role of each organization, and the \
         platform's own role may not create roles (the operator can grant it CREATEROLE)"
    )]
    SwitchedOff,
    /// The store has no SQL.
    #[error("queries need PostgreSQL: this store has no SQL tables")]
    NoSql,
}

impl Refuse for QueryFailure {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(_) | Self::TooLong | Self::TooDeep => ErrorCode::InvalidQuery,
            Self::TooSlow(_) => ErrorCode::QueryTimedOut,
            Self::TooManyRows(_) | Self::TooLarge(_) | Self::RowTooLarge => {
                ErrorCode::ResultTooLarge
            }
            Self::TooMuchMemory
            | Self::TooMuchTemporarySpace
            | Self::Unrunnable
            | Self::Database(_) => ErrorCode::QueryFailed,
            Self::SwitchedOff | Self::NoSql => ErrorCode::QueriesUnavailable,
        }
    }
}

/// The server's message about an error in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseMessage {
    /// The message.
    pub message: String,
    /// Line of the query in which the error is, starting at 1; `None` if it is unknown or the query
    /// has one line.
    pub line: Option<usize>,
    /// The server's advice.
    pub hint: Option<String>,
}

impl fmt::Display for DatabaseMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, ". {hint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_as_people_write_them() {
        for (failure, message) in [
            (
                QueryFailure::TooSlow(QUERY_LIMITS),
                "the query took longer than 15 s and was cancelled",
            ),
            (
                QueryFailure::TooManyRows(QUERY_LIMITS),
                "the result has more than 10,000 rows: aggregate, filter, or add a LIMIT",
            ),
            (
                QueryFailure::TooLarge(QUERY_LIMITS),
                "the result is larger than 16 MiB: select fewer columns or rows, or aggregate",
            ),
            (
                QueryFailure::TooLarge(SNAPSHOT_LIMITS),
                "the result is larger than 4096 MiB: select fewer columns or rows, or aggregate",
            ),
            (
                QueryFailure::RowTooLarge,
                "a row of the result is larger than 16 MiB: select fewer columns",
            ),
        ] {
            assert_eq!(failure.to_string(), message);
        }
        let short = QueryLimits {
            time: Duration::from_millis(500),
            ..QUERY_LIMITS
        };
        assert_eq!(
            QueryFailure::TooSlow(short).to_string(),
            "the query took longer than 0.5 s and was cancelled"
        );
    }

    #[test]
    fn the_servers_message_is_followed_by_line_and_hint() {
        let plain = DatabaseMessage {
            message: "column \"a\" does not exist".to_owned(),
            line: None,
            hint: None,
        };
        assert_eq!(plain.to_string(), "column \"a\" does not exist");
        let full = DatabaseMessage {
            line: Some(3),
            hint: Some("Perhaps you meant \"b\".".to_owned()),
            ..plain
        };
        assert_eq!(
            full.to_string(),
            "column \"a\" does not exist (line 3). Perhaps you meant \"b\"."
        );
    }
}
