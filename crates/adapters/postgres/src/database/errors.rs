//! Mapping of database errors to errors of the ports.

use std::{
    fmt::{Debug, Display},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use labdata_domain::conflict::Conflict;
use labdata_ports::PortError;
use tokio::time::Instant;

use super::condition::Condition;

/// Message for a database that cannot be reached.
pub(crate) const NO_ANSWER: &str = "the database does not respond";

/// Maximum number of attempts at work that clashes with other transactions.
const MAX_ATTEMPTS: u32 = 8;

/// Time within which another attempt starts, as long as a wait for a row may take.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Pauses between attempts are spread over this many milliseconds.
const SPREAD: u32 = 8;

/// Counts all pauses, so that writers that clashed pause for different times.
static PAUSES: AtomicU32 = AtomicU32::new(0);

/// A failure after which another attempt may succeed.
pub(crate) trait Transient: Debug {
    /// Returns whether another attempt may succeed.
    fn is_transient(&self) -> bool;
}

impl Transient for Fault {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if kind_of(error) == Kind::Clash)
    }
}

/// Why a statement or a transaction failed. It retains the driver's error, so that the caller can
/// still choose what a violated constraint means.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The database's.
    Database(DieselError),
    /// Found out by this adapter.
    Port(PortError),
}

impl From<DieselError> for Fault {
    fn from(error: DieselError) -> Self {
        Self::Database(error)
    }
}

impl From<PortError> for Fault {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl From<Fault> for PortError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Database(error) => port_error(error),
            Fault::Port(error) => error,
        }
    }
}

impl Fault {
    /// Turns the violation of that constraint (a unique one, or a foreign key) into an error of
    /// the caller's choice; everything else stays.
    pub(crate) fn on_violation(self, constraint: &str, error: impl FnOnce() -> PortError) -> Self {
        match self {
            Self::Database(DieselError::DatabaseError(
                DatabaseErrorKind::UniqueViolation | DatabaseErrorKind::ForeignKeyViolation,
                information,
            )) if information.constraint_name() == Some(constraint) => Self::Port(error()),
            other => other,
        }
    }

    /// Returns whether that unique constraint or index was violated.
    pub(crate) fn violates(&self, constraint: &str) -> bool {
        match self {
            Self::Database(DieselError::DatabaseError(
                DatabaseErrorKind::UniqueViolation,
                information,
            )) => information.constraint_name() == Some(constraint),
            _ => false,
        }
    }

    /// Takes a broken connection for an unknown outcome: for a statement that commits by itself, and has another effect
    /// when it is repeated.
    pub(crate) fn of_commit(self) -> Self {
        match self {
            Self::Database(error) if kind_of(&error) == Kind::Broken => {
                Self::Port(outcome_unknown(&error))
            }
            other => other,
        }
    }
}

/// The error of a commit during which the connection broke.
pub(super) fn outcome_unknown(error: &DieselError) -> PortError {
    tracing::error!(%error, "the connection to the database broke during a commit");
    // Never tried again by itself: the commit may have taken effect, and another would repeat it.
    PortError::OutcomeUnknown("the connection broke during the commit".to_owned())
}

/// Kind of failure, as far as it decides how to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Another transaction was in the way; the whole may succeed when it is done again.
    Clash,
    /// Another transaction retained a lock for too long.
    LockTimeout,
    /// The statement was cancelled at its time limit.
    TooSlow,
    /// The server has no disk space for what it would store.
    DiskFull,
    /// The connection broke, or the server goes down or comes up.
    Broken,
    /// Anything else.
    Other,
}

pub(crate) fn kind_of(error: &DieselError) -> Kind {
    match error {
        DieselError::DatabaseError(kind, information) => kind_of_response(*kind, &**information),
        DieselError::BrokenTransactionManager => Kind::Broken,
        // The rollback fails because the commit did: only the first error says why.
        DieselError::RollbackErrorOnCommit { commit_error, .. } => kind_of(commit_error),
        _ => Kind::Other,
    }
}

/// Returns true if the database refused a statement, so that it had no effect; a connection that broke
/// leaves that open.
pub(crate) fn is_refusal(error: &DieselError) -> bool {
    matches!(error, DieselError::DatabaseError(..)) && kind_of(error) != Kind::Broken
}

fn kind_of_response(kind: DatabaseErrorKind, information: &dyn DatabaseErrorInformation) -> Kind {
    match kind {
        DatabaseErrorKind::SerializationFailure => Kind::Clash,
        DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
            Kind::Broken
        }
        DatabaseErrorKind::Unknown => match Condition::of(information) {
            // PostgreSQL has rolled one side back, so the other one succeeds and this one may be tried again.
            Some(Condition::Deadlock) => Kind::Clash,
            Some(Condition::LockTimeout) => Kind::LockTimeout,
            Some(Condition::StatementTimeout) => Kind::TooSlow,
            Some(Condition::DiskFull) => Kind::DiskFull,
            Some(Condition::Unavailable) => Kind::Broken,
            Some(Condition::Undefined | Condition::Limit) | None => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// Maps an error of the database where no constraint is expected to be violated.
#[expect(
    clippy::needless_pass_by_value,
    reason = "this is the form that `map_err` takes"
)]
pub(crate) fn port_error(error: DieselError) -> PortError {
    match kind_of(&error) {
        Kind::Clash => PortError::Busy("others keep changing the same rows".to_owned()),
        Kind::LockTimeout => {
            PortError::Busy("waited too long for rows that others hold".to_owned())
        }
        Kind::TooSlow => {
            tracing::warn!(%error, "a statement took too long and was cancelled");
            PortError::Exhausted("a statement took too long".to_owned())
        }
        Kind::DiskFull => {
            tracing::error!(%error, "the disk of the database is full");
            PortError::DiskFull("the disk of the database is full".to_owned())
        }
        Kind::Broken => {
            tracing::warn!(%error, "the connection to the database broke");
            PortError::Unavailable(NO_ANSWER.to_owned())
        }
        Kind::Other => PortError::Internal(describe(&error)),
    }
}

/// Maps an error of a statement on tables of an organization, which may be deleted since it was planned.
pub(crate) fn table_error(error: DieselError) -> PortError {
    let is_deleted = matches!(
        &error,
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, information)
            if Condition::of(&**information) == Some(Condition::Undefined)
    );
    if is_deleted {
        PortError::Conflict(Conflict::TablesChanged)
    } else {
        port_error(error)
    }
}

/// For the log: with what PostgreSQL says beside its message, but for the values of rows.
fn describe(error: &DieselError) -> String {
    match error {
        DieselError::DatabaseError(_, information) => {
            let table = information
                .table_name()
                .map(|table| format!(" (table {table})"));
            format!("{error}{}", table.unwrap_or_default())
        }
        _ => error.to_string(),
    }
}

/// A row whose column cannot be what the entity needs.
pub(crate) fn corrupt(table: &str, column: &str, id: impl Display) -> PortError {
    PortError::Corrupt(format!("labdata.{table}.{column} of {id}"))
}

/// Counts attempts at work that may clash with other transactions.
#[derive(Debug)]
pub(crate) struct Attempts {
    done: u32,
    started: Instant,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            done: 0,
            started: Instant::now(),
        }
    }
}

impl Attempts {
    /// The time that is left for further attempts.
    pub(crate) fn left(&self) -> Duration {
        MAX_TIME.saturating_sub(self.started.elapsed())
    }

    /// Returns whether to try again after a failure, once it has paused: longer with each attempt,
    /// and for different times in writers that clashed.
    pub(crate) async fn again(&mut self, failure: &impl Transient) -> bool {
        self.done += 1;
        if !failure.is_transient() || self.done >= MAX_ATTEMPTS || self.left().is_zero() {
            return false;
        }
        tracing::debug!(
            attempt = self.done,
            ?failure,
            "clashed with another transaction"
        );
        // A counter suffices: two writers that clashed must differ, but need not be unpredictable.
        let spread = PAUSES.fetch_add(1, Ordering::Relaxed) % SPREAD;
        let pause = (1_u64 << self.done) + u64::from(spread);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        true
    }
}

/// Does work again as long as it clashes with other transactions: `retried!(self.claim_once(id))`
/// for an `async fn` that ends in `Result<_, Fault>` and leaves no transaction open.
macro_rules! retried {
    ($work:expr) => {{
        let mut attempts = $crate::database::errors::Attempts::default();
        loop {
            match $work.await {
                Err(fault) if attempts.again(&fault).await => {}
                outcome => break outcome,
            }
        }
    }};
}
pub(crate) use retried;

/// Does work in a transaction, and again if it clashes with others:
/// `transacted!(self.database, connection => close(connection, id))` for an `async fn` that takes a
/// `&mut Connection` and returns a `Result<_, Fault>`.
macro_rules! transacted {
    ($database:expr, $connection:ident => $work:expr) => {
        $crate::database::errors::retried!(async {
            let mut connection = $database.connection().await?;
            $crate::database::transaction::begin(&mut connection).await?;
            let $connection = &mut connection;
            let outcome = $work.await;
            $crate::database::transaction::end(&mut connection, outcome).await
        })
    };
}
pub(crate) use transacted;

#[cfg(test)]
mod tests {
    use super::*;

    fn database_error(kind: DatabaseErrorKind, message: &str) -> DieselError {
        DieselError::DatabaseError(kind, Box::new(message.to_owned()))
    }

    #[test]
    fn clashes_and_lock_waits_are_busy_and_lost_connections_unavailable() {
        use DatabaseErrorKind::{SerializationFailure, UnableToSendCommand, Unknown};
        for (kind, message) in [
            (SerializationFailure, "could not serialize access"),
            (Unknown, "deadlock detected"),
            (Unknown, "canceling statement due to lock timeout"),
        ] {
            let error = port_error(database_error(kind, message));
            assert!(matches!(error, PortError::Busy(_)), "{message}: {error}");
        }
        for (kind, message) in [
            (UnableToSendCommand, "connection closed"),
            (
                Unknown,
                "terminating connection due to administrator command",
            ),
            (Unknown, "the database system is starting up"),
        ] {
            let error = port_error(database_error(kind, message));
            assert!(
                matches!(error, PortError::Unavailable(_)),
                "{message}: {error}"
            );
        }
    }

    /// An error with a hint, as PostgreSQL adds one to some.
    struct Hinted(&'static str);

    impl DatabaseErrorInformation for Hinted {
        fn message(&self) -> &'static str {
            self.0
        }
        fn details(&self) -> Option<&str> {
            None
        }
        fn hint(&self) -> Option<&str> {
            Some("Check free disk space.")
        }
        fn table_name(&self) -> Option<&str> {
            None
        }
        fn column_name(&self) -> Option<&str> {
            None
        }
        fn constraint_name(&self) -> Option<&str> {
            None
        }
        fn statement_position(&self) -> Option<i32> {
            None
        }
    }

    #[test]
    fn a_full_disk_of_the_database_is_told_apart() {
        use DatabaseErrorKind::Unknown;
        let short = Hinted("could not extend file \"base/1/2\": wrote only 4096 of 8192 bytes");
        let errors = [
            database_error(
                Unknown,
                "could not extend file \"base/5/16384\": No space left on device",
            ),
            database_error(
                Unknown,
                "could not write to file \"base/pgsql_tmp/1\": Disk quota exceeded",
            ),
            DieselError::DatabaseError(Unknown, Box::new(short)),
        ];
        for error in errors {
            let displayed = error.to_string();
            let mapped = port_error(error);
            assert!(
                matches!(mapped, PortError::DiskFull(_)),
                "{displayed}: {mapped}"
            );
        }
    }

    #[test]
    fn a_missing_row_is_never_taken_for_a_missing_thing() {
        assert!(matches!(
            port_error(DieselError::NotFound),
            PortError::Internal(_)
        ));
    }

    #[test]
    fn what_is_unavailable_names_no_host() {
        let error = database_error(
            DatabaseErrorKind::UnableToSendCommand,
            "error connecting to 10.0.0.1 as lab:secret",
        );
        assert_eq!(
            port_error(error).to_string(),
            "unavailable: the database does not respond"
        );
    }

    #[tokio::test]
    async fn only_clashes_are_tried_again_and_not_for_ever() {
        let clash = Fault::from(database_error(
            DatabaseErrorKind::Unknown,
            "deadlock detected",
        ));
        let mut attempts = Attempts::default();
        let mut tries = 1;
        while attempts.again(&clash).await {
            tries += 1;
        }
        assert_eq!(tries, MAX_ATTEMPTS);
        assert!(
            !Attempts::default()
                .again(&Fault::from(DieselError::NotFound))
                .await
        );
    }
}
