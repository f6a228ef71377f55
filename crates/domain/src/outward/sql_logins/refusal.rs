//! Refusals of requests about SQL logins.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Largest number of SQL logins of an organization, ended ones included.
pub const MAX_SQL_LOGINS: u32 = 100;

/// Error: the organization has as many SQL logins as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an organization has at most {MAX_SQL_LOGINS} SQL logins: delete one that is not needed")]
pub struct TooManySqlLogins;

impl Refuse for TooManySqlLogins {
    fn code(&self) -> ErrorCode {
        ErrorCode::TooManySqlLogins
    }
}

/// Error: the server offers no SQL logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this server offers no SQL logins: its operator sets LABDATA_SQL_BIND, the address where PostgreSQL's protocol \
     is served"
)]
pub struct SqlLoginsOff;

impl Refuse for SqlLoginsOff {
    fn code(&self) -> ErrorCode {
        ErrorCode::SqlLoginsOff
    }
}

/// Error: several organizations share the platform, and its operator has not agreed to SQL logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "several organizations share this platform, and PostgreSQL's catalogs name the tables of all: its operator sets \
     LABDATA_SQL_SHARED=true if they may be known"
)]
pub struct SqlNotShared;

impl Refuse for SqlNotShared {
    fn code(&self) -> ErrorCode {
        ErrorCode::SqlNotShared
    }
}

/// Error: the platform's own role may not create roles in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the platform may not create roles in its PostgreSQL: an administrator runs ALTER ROLE … CREATEROLE for the role \
     of DATABASE_URL"
)]
pub struct SqlRolesRefused;

impl Refuse for SqlRolesRefused {
    fn code(&self) -> ErrorCode {
        ErrorCode::SqlRolesRefused
    }
}

/// Error: a login has ended already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this SQL login has ended already")]
pub struct SqlLoginEnded;

impl Refuse for SqlLoginEnded {
    fn code(&self) -> ErrorCode {
        ErrorCode::NotFound
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::NotFound
    }
}
