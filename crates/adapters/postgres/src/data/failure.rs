//! What a failed statement of a write means.

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use labdata_domain::data_write::Problem;
use labdata_ports::{PortError, data::WriteError};

/// Why applying a write stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is the request's doing.
    Problems(Vec<Problem>),
    /// It clashed with another transaction: the whole may succeed when tried again.
    Clash(String),
    /// The write's own refusals and the port's.
    Refused(WriteError),
}

impl Failure {
    /// The failure where no request's problems are expected.
    pub(crate) fn into_port_error(self) -> PortError {
        match self {
            Self::Problems(problems) => PortError::Internal(format!("{problems:?}")),
            Self::Clash(why) => PortError::Busy(why),
            Self::Refused(WriteError::Port(error)) => error,
            Self::Refused(other) => PortError::Internal(other.to_string()),
        }
    }
}

/// What an error of the driver means where no request's problems are expected.
pub(crate) fn port_error(error: DieselError) -> PortError {
    Failure::from(error).into_port_error()
}

impl From<DieselError> for Failure {
    fn from(error: DieselError) -> Self {
        match error {
            DieselError::DatabaseError(kind, information) => classify(kind, information.as_ref()),
            DieselError::BrokenTransactionManager => Self::Refused(
                PortError::Unavailable("the database connection broke".to_owned()).into(),
            ),
            other => Self::Refused(PortError::Internal(other.to_string()).into()),
        }
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Refused(error)
    }
}

fn classify(kind: DatabaseErrorKind, information: &dyn DatabaseErrorInformation) -> Failure {
    let message = information.message();
    match kind {
        DatabaseErrorKind::SerializationFailure => Failure::Clash(message.to_owned()),
        DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
            Failure::Refused(
                PortError::Unavailable("the database connection broke".to_owned()).into(),
            )
        }
        DatabaseErrorKind::UniqueViolation
        | DatabaseErrorKind::ForeignKeyViolation
        | DatabaseErrorKind::RestrictViolation
        | DatabaseErrorKind::ExclusionViolation
        | DatabaseErrorKind::CheckViolation
        | DatabaseErrorKind::NotNullViolation => {
            Failure::Problems(vec![constraint_problem(kind, information)])
        }
        // The driver tells these apart only by their text, which `lc_messages` keeps in English.
        _ if message.contains("deadlock detected") => Failure::Clash(message.to_owned()),
        _ if message.contains("due to lock timeout") => Failure::Refused(
            PortError::Busy("waited too long for rows that another write holds".to_owned()).into(),
        ),
        _ if message.contains("terminating connection")
            || message.contains("shutting down")
            || message.contains("starting up") =>
        {
            Failure::Refused(PortError::Unavailable("the database restarts".to_owned()).into())
        }
        _ if is_about_values(message) => {
            let table = information
                .table_name()
                .map(|table| format!("\"{table}\": "))
                .unwrap_or_default();
            Failure::Problems(vec![Problem::of_the_request(format!("{table}{message}"))])
        }
        _ => Failure::Refused(PortError::Internal(message.to_owned()).into()),
    }
}

/// Limits of PostgreSQL on values that passed every check of their type.
fn is_about_values(message: &str) -> bool {
    [
        "index row size",
        "index row requires",
        "row is too big",
        "out of range",
        "invalid memory alloc",
        "array size exceeds",
        "exceeds the maximum allowed",
    ]
    .iter()
    .any(|part| message.contains(part))
}

fn constraint_problem(
    kind: DatabaseErrorKind,
    information: &dyn DatabaseErrorInformation,
) -> Problem {
    let table = information.table_name().unwrap_or("?");
    let constraint = information.constraint_name().unwrap_or("?");
    let detail: String = information
        .details()
        .unwrap_or_default()
        .chars()
        .take(500)
        .collect();
    let what = match kind {
        DatabaseErrorKind::UniqueViolation => "a value that must be unique occurs twice",
        DatabaseErrorKind::ForeignKeyViolation => "a reference would point at no row",
        DatabaseErrorKind::NotNullViolation => {
            let column = information.column_name().unwrap_or("?");
            return Problem::of_the_request(format!(
                "\"{table}\": column \"{column}\" must not be null"
            ));
        }
        _ => "a constraint does not hold",
    };
    Problem::of_the_request(format!(
        "\"{table}\": {what} (constraint \"{constraint}\"): {detail}"
    ))
}
