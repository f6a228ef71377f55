//! Conditions of PostgreSQL for which the driver has no kind.

use diesel::result::DatabaseErrorInformation;

/// A condition that decides how to continue. diesel-async retains the SQLSTATE of violated constraints
/// and serialization failures only; of other errors it passes on the message. Sessions report errors in
/// English ([`super::connect`]; a server that does not allow that is reported, [`super::language`]),
/// so the beginnings and ends of the messages stand for the SQLSTATE. Nothing else reads messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// `deadlock_detected` (40P01).
    Deadlock,
    /// `lock_not_available` (55P03), after `lock_timeout`.
    LockTimeout,
    /// `query_canceled` (57014), after `statement_timeout`.
    StatementTimeout,
    /// `disk_full` (53100).
    DiskFull,
    /// `admin_shutdown`, `crash_shutdown`, `cannot_connect_now`, `idle_session_timeout` (57P01 to 57P05).
    Unavailable,
    /// `undefined_table`, `undefined_column`, `invalid_schema_name` (42P01, 42703, 3F000).
    Undefined,
    /// `program_limit_exceeded`, `too_many_columns`, `numeric_value_out_of_range` (54000, 54011, 22003).
    Limit,
}

/// Text by which a message is recognized.
enum Text {
    Whole(&'static str),
    Start(&'static str),
    End(&'static str),
    /// Between values, which differ.
    Part(&'static str),
}

impl Text {
    fn is_of(&self, message: &str) -> bool {
        match self {
            Self::Whole(text) => message == *text,
            Self::Start(text) => message.starts_with(text),
            Self::End(text) => message.ends_with(text),
            Self::Part(text) => message.contains(text),
        }
    }
}

/// Messages of PostgreSQL 14 to 18, in English.
const MESSAGES: [(Condition, Text); 20] = {
    use Condition::{
        Deadlock, DiskFull, Limit, LockTimeout, StatementTimeout, Unavailable, Undefined,
    };
    use Text::{End, Part, Start, Whole};
    [
        (Deadlock, Whole("deadlock detected")),
        (LockTimeout, End("due to lock timeout")),
        (StatementTimeout, End("due to statement timeout")),
        (DiskFull, Part("No space left on device")),
        (DiskFull, Part("Disk quota exceeded")),
        (Unavailable, Start("terminating connection")),
        (Unavailable, Start("the database system is starting up")),
        (Unavailable, Start("the database system is shutting down")),
        (
            Unavailable,
            Start("the database system is in recovery mode"),
        ),
        (
            Unavailable,
            Start("the database system is not yet accepting connections"),
        ),
        (Undefined, End("does not exist")),
        (Limit, Start("index row size")),
        (Limit, Start("index row requires")),
        (Limit, Start("row is too big")),
        (Limit, Part("out of range")),
        (Limit, Start("invalid memory alloc")),
        (Limit, Start("array size exceeds")),
        (Limit, Part("exceeds the maximum allowed")),
        // Columns that were dropped count.
        (Limit, Start("tables can have at most")),
        (Limit, Start("total size of jsonb")),
    ]
};

/// Hint with which PostgreSQL says that a file could be extended in part only.
const DISK_FULL_HINT: &str = "Check free disk space.";

impl Condition {
    /// The condition that an error reports, for which the driver has no kind; `None` for others.
    pub(crate) fn of(information: &dyn DatabaseErrorInformation) -> Option<Self> {
        if information.hint() == Some(DISK_FULL_HINT) {
            return Some(Self::DiskFull);
        }
        let message = information.message();
        let mut known = MESSAGES.iter();
        let (condition, _) = known.find(|(_, text)| text.is_of(message))?;
        Some(*condition)
    }
}
