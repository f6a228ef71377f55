//! Failures of a write's statements.

use diesel::result::Error as DieselError;
use labdata_domain::data::write::Problem;
use labdata_ports::{PortError, data::WriteError};
use time::OffsetDateTime;

use crate::database::{
    errors::{Fault, Kind, Transient, kind_of, port_error},
    violation::violation_of,
};

/// Failure to apply a write.
#[derive(Debug)]
pub(super) enum Failure {
    /// The request is at fault.
    Problems(Vec<Problem>),
    /// Either the request is at fault, or another writer created the same rows since they were
    /// matched. Matching again tells: a request at fault fails in the same way.
    Contended(Vec<Problem>),
    /// A clash with another transaction; another attempt may succeed.
    Clash(String),
    /// Something that the write replaces is of a later moment than what it has stored. Another attempt starts with this
    /// moment.
    Late(OffsetDateTime),
    /// The job of the new execution is missing; another attempt must create it.
    JobMissing,
    /// A refusal of the write, or a failure of the port.
    Refused(WriteError),
}

impl Failure {
    /// Turns problems into contended ones: for rows that were matched before they are created.
    pub(super) fn contended(self) -> Self {
        match self {
            Self::Problems(problems) => Self::Contended(problems),
            other => other,
        }
    }
}

impl Transient for Failure {
    fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Clash(_) | Self::Late(_) | Self::JobMissing | Self::Contended(_)
        )
    }
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Problems(problems) | Failure::Contended(problems) => Self::Problems(problems),
            Failure::Clash(why) => PortError::Busy(why).into(),
            Failure::Late(_) => {
                PortError::Busy("others keep changing the same rows".to_owned()).into()
            }
            Failure::JobMissing => {
                PortError::Busy("the job was deleted repeatedly".to_owned()).into()
            }
            Failure::Refused(error) => error,
        }
    }
}

impl From<Failure> for PortError {
    /// The failure of work without a request that could be at fault.
    fn from(failure: Failure) -> Self {
        match WriteError::from(failure) {
            WriteError::Port(error) => error,
            other => Self::Internal(format!("{other:?}")),
        }
    }
}

impl From<DieselError> for Failure {
    fn from(error: DieselError) -> Self {
        match kind_of(&error) {
            Kind::Clash => Self::Clash(error.to_string()),
            // Not tried again: the request has used up its time, or the cause lasts.
            Kind::LockTimeout | Kind::TooSlow | Kind::DiskFull | Kind::Broken => {
                Self::Refused(port_error(error).into())
            }
            Kind::Other => match violation_of(&error) {
                Some(violation) => Self::Problems(vec![violation.into()]),
                None => Self::Refused(port_error(error).into()),
            },
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Database(error) => error.into(),
            Fault::Port(error) => error.into(),
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
