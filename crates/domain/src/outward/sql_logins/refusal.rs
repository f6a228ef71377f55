//! Refusals of requests about SQL logins.

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Largest number of SQL logins of an organization, ended ones included.
pub const MAX_SQL_LOGINS: u32 = 100;

/// Largest number of SQL logins of a user, so that one user leaves others theirs.
pub const MAX_SQL_LOGINS_OF_USER: u32 = 10;

/// Limits of the number of SQL logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlLoginLimits {
    /// Of an organization.
    pub of_organization: u32,
    /// Of a user.
    pub of_user: u32,
}

impl SqlLoginLimits {
    /// The limits of the platform.
    pub const OF_PLATFORM: Self = Self {
        of_organization: MAX_SQL_LOGINS,
        of_user: MAX_SQL_LOGINS_OF_USER,
    };

    /// Checks that there is room for one more login, given the numbers of those that are stored.
    ///
    /// # Errors
    /// [`TooManySqlLogins`].
    pub fn check(self, of_organization: u64, of_user: u64) -> Result<(), TooManySqlLogins> {
        if of_user >= self.of_user.into() {
            Err(TooManySqlLogins::OfUser)
        } else if of_organization >= self.of_organization.into() {
            Err(TooManySqlLogins::OfOrganization)
        } else {
            Ok(())
        }
    }
}

/// Error: there are as many SQL logins as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooManySqlLogins {
    /// Of the organization.
    #[error(
        "an organization has at most {MAX_SQL_LOGINS} SQL logins: delete one that is not needed"
    )]
    OfOrganization,
    /// Of the user.
    #[error(
        "a user has at most {MAX_SQL_LOGINS_OF_USER} SQL logins: delete one that is not needed"
    )]
    OfUser,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_does_not_use_up_the_logins_of_an_organization() {
        let limits = SqlLoginLimits::OF_PLATFORM;
        assert_eq!(limits.check(99, 9), Ok(()));
        assert_eq!(limits.check(10, 10), Err(TooManySqlLogins::OfUser));
        assert_eq!(limits.check(100, 0), Err(TooManySqlLogins::OfOrganization));
    }
}
