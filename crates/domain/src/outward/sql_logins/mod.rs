//! SQL logins: PostgreSQL roles of people's own tools (contract §21).

mod comment;
mod connection;
mod password;
mod refusal;

pub use comment::{column_comment, table_comment};
pub use connection::{ConnectionExamples, SqlConnection, SqlEndpoint};
pub use password::SqlPassword;
pub use refusal::{
    MAX_SQL_LOGINS, MAX_SQL_LOGINS_OF_USER, SqlLoginEnded, SqlLoginLimits, SqlLoginsOff,
    SqlNotShared, SqlRolesRefused, TooManySqlLogins,
};

use time::{Duration, OffsetDateTime};

use crate::{
    ids::{SqlLoginId, UserId},
    people::{ExpiresInPast, check_expiry},
};

/// Maximum length of a login's name, in characters.
pub const MAX_LOGIN_NAME: usize = 200;

/// Maximum number of concurrent connections of one login.
pub const LOGIN_CONNECTIONS: u32 = 8;

/// Maximum duration of a statement.
pub const STATEMENT_LIMIT: Duration = Duration::seconds(60);

/// Maximum pause within a transaction, whose snapshot holds back vacuum.
pub const IDLE_TRANSACTION_LIMIT: Duration = Duration::seconds(60);

/// Maximum duration of a transaction, for the same reason.
pub const TRANSACTION_LIMIT: Duration = Duration::minutes(5);

/// Prefix of the roles' names.
const ROLE_PREFIX: &str = "sql_";

/// A SQL login. Its password is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlLogin {
    /// Its id.
    pub id: SqlLoginId,
    /// The user whose rights it has.
    pub user: UserId,
    /// Purpose of the login, in its user's words.
    pub name: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it ends by itself.
    pub expires_at: Option<OffsetDateTime>,
    /// Its state.
    pub state: SqlLoginState,
}

/// State of a SQL login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlLoginState {
    /// It may connect.
    Active,
    /// It has ended, with its sessions, and never begins again.
    Ended {
        /// When.
        at: OffsetDateTime,
        /// Why.
        reason: EndReason,
    },
}

/// Why a SQL login has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Somebody revoked it. Lists leave it out.
    Revoked,
    /// Its time has passed.
    Expired,
    /// Its user was disabled.
    UserDisabled,
    /// The platform has several organizations by now, and its settings do not say that they share their catalogs.
    NotShared,
    /// PostgreSQL does not have its role: backups hold no roles.
    RoleMissing,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Revoked,
        Self::Expired,
        Self::UserDisabled,
        Self::NotShared,
        Self::RoleMissing,
    ];

    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::UserDisabled => "user_disabled",
            Self::NotShared => "not_shared",
            Self::RoleMissing => "role_missing",
        }
    }

    /// Returns the one of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// Facts that decide whether an active login stays so.
#[derive(Clone, Copy, Debug)]
pub struct LoginFacts {
    /// True if its user is disabled.
    pub is_user_disabled: bool,
    /// True if PostgreSQL has its role.
    pub has_role: bool,
    /// True if the platform has several organizations, and its settings do not allow logins then.
    pub is_sharing_refused: bool,
}

impl SqlLogin {
    /// A login that begins now.
    ///
    /// # Errors
    /// [`ExpiresInPast`] if it would have ended already.
    pub fn begin(
        id: SqlLoginId,
        user: UserId,
        name: String,
        expires_at: Option<OffsetDateTime>,
        now: OffsetDateTime,
    ) -> Result<Self, ExpiresInPast> {
        check_expiry(expires_at, now)?;
        Ok(Self {
            id,
            user,
            name,
            created_at: now,
            expires_at,
            state: SqlLoginState::Active,
        })
    }

    /// The name of its role in PostgreSQL.
    #[must_use]
    pub fn role(&self) -> String {
        role_name(self.id)
    }

    /// Returns true until it has ended.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self.state, SqlLoginState::Active)
    }

    /// Returns why it must end; `None` if it stays active, or has ended already.
    #[must_use]
    pub fn due(&self, facts: LoginFacts, now: OffsetDateTime) -> Option<EndReason> {
        if !self.is_active() {
            return None;
        }
        if facts.is_user_disabled {
            Some(EndReason::UserDisabled)
        } else if self.expires_at.is_some_and(|at| at <= now) {
            Some(EndReason::Expired)
        } else if facts.is_sharing_refused {
            Some(EndReason::NotShared)
        } else if !facts.has_role {
            Some(EndReason::RoleMissing)
        } else {
            None
        }
    }

    /// The login after its end. One that has ended by itself can still be revoked, which removes it from lists.
    ///
    /// # Errors
    /// [`SqlLoginEnded`].
    pub fn end(self, reason: EndReason, at: OffsetDateTime) -> Result<Self, SqlLoginEnded> {
        match self.state {
            SqlLoginState::Ended {
                reason: EndReason::Revoked,
                ..
            } => return Err(SqlLoginEnded),
            SqlLoginState::Ended { .. } if reason != EndReason::Revoked => {
                return Err(SqlLoginEnded);
            }
            SqlLoginState::Active | SqlLoginState::Ended { .. } => {}
        }
        Ok(Self {
            state: SqlLoginState::Ended { at, reason },
            ..self
        })
    }
}

/// The name of a login's role in PostgreSQL.
#[must_use]
pub fn role_name(id: SqlLoginId) -> String {
    format!("{ROLE_PREFIX}{}", id.as_uuid().simple())
}

/// Returns whether a role of that name is a login's: the only roles that a network reaches.
#[must_use]
pub fn is_role_name(name: &str) -> bool {
    login_of_role(name).is_some()
}

/// The login whose role has that name.
#[must_use]
pub fn login_of_role(name: &str) -> Option<SqlLoginId> {
    let id = name.strip_prefix(ROLE_PREFIX)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    // Other spellings of an id are no names of roles.
    let is_id = id.len() == 32 && id.bytes().all(is_digit);
    is_id.then(|| id.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
    const FINE: LoginFacts = LoginFacts {
        is_user_disabled: false,
        has_role: true,
        is_sharing_refused: false,
    };

    fn login(expires_at: Option<OffsetDateTime>) -> Result<SqlLogin, ExpiresInPast> {
        let id = SqlLoginId::new(Uuid::from_u128(7));
        let user = UserId::new(Uuid::from_u128(1));
        SqlLogin::begin(id, user, "grafana".to_owned(), expires_at, NOW)
    }

    #[test]
    fn a_login_does_not_begin_after_its_end() {
        assert_eq!(login(Some(NOW)).unwrap_err(), ExpiresInPast);
        assert!(login(Some(NOW + Duration::SECOND)).is_ok());
    }

    #[test]
    fn an_active_login_ends_for_each_reason() {
        let later = NOW + Duration::HOUR;
        let login = login(Some(later)).unwrap();
        assert_eq!(login.due(FINE, NOW), None);
        assert_eq!(login.due(FINE, later), Some(EndReason::Expired));
        for (facts, reason) in [
            (
                LoginFacts {
                    is_user_disabled: true,
                    ..FINE
                },
                EndReason::UserDisabled,
            ),
            (
                LoginFacts {
                    has_role: false,
                    ..FINE
                },
                EndReason::RoleMissing,
            ),
            (
                LoginFacts {
                    is_sharing_refused: true,
                    ..FINE
                },
                EndReason::NotShared,
            ),
        ] {
            assert_eq!(login.due(facts, NOW), Some(reason));
            let ended = login.clone().end(reason, NOW).unwrap();
            assert_eq!(ended.due(facts, later), None);
        }
    }

    #[test]
    fn an_ended_login_can_be_revoked_once() {
        let expired = login(None).unwrap().end(EndReason::Expired, NOW).unwrap();
        assert_eq!(
            expired.clone().end(EndReason::UserDisabled, NOW),
            Err(SqlLoginEnded)
        );
        let revoked = expired.end(EndReason::Revoked, NOW).unwrap();
        assert_eq!(revoked.end(EndReason::Revoked, NOW), Err(SqlLoginEnded));
    }

    #[test]
    fn only_roles_of_logins_have_their_names() {
        let stored = login(None).unwrap();
        assert!(is_role_name(&stored.role()));
        assert_eq!(login_of_role(&stored.role()), Some(stored.id));
        for other in ["labdata", "sql_", "sql_labdata", "postgres", "", "sql_0123"] {
            assert!(!is_role_name(other), "{other}");
        }
        assert!(!is_role_name(&format!("sql_{}", "A".repeat(32))));
    }
}
