//! What a failed statement of a write means.

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use labdata_domain::data::write::Problem;
use labdata_ports::{PortError, data::WriteError};

use crate::database::errors::{Kind, kind_of, port_error};

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

impl From<DieselError> for Failure {
    fn from(error: DieselError) -> Self {
        match kind_of(&error) {
            Kind::Clash => Self::Clash(error.to_string()),
            Kind::LockTimeout | Kind::Broken => Self::Refused(port_error(error).into()),
            Kind::Other => match &error {
                DieselError::DatabaseError(kind, information) => {
                    problem_of(*kind, information.as_ref()).map_or_else(
                        || Self::Refused(port_error(error).into()),
                        |problem| Self::Problems(vec![problem]),
                    )
                }
                _ => Self::Refused(port_error(error).into()),
            },
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

/// What the request did to earn a refusal of the database; `None` when it is not its doing.
fn problem_of(
    kind: DatabaseErrorKind,
    information: &dyn DatabaseErrorInformation,
) -> Option<Problem> {
    match kind {
        DatabaseErrorKind::UniqueViolation
        | DatabaseErrorKind::ForeignKeyViolation
        | DatabaseErrorKind::RestrictViolation
        | DatabaseErrorKind::ExclusionViolation
        | DatabaseErrorKind::CheckViolation
        | DatabaseErrorKind::NotNullViolation => Some(constraint_problem(kind, information)),
        _ if is_about_values(information.message()) => {
            let table = information
                .table_name()
                .map(|table| format!("\"{table}\": "));
            let message = format!("{}{}", table.unwrap_or_default(), information.message());
            Some(Problem::of_the_request(message))
        }
        _ => None,
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
