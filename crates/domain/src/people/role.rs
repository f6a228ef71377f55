//! Roles of users: ceilings of what their keys and sessions may do.

use std::fmt;

use crate::{
    people::scope::{Scope, Scopes},
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Role of a user. No key and no session of the user exceeds it (contract §19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads and writes.
    #[default]
    Member,
    /// Manages users, keys, tables and instruments, too, and sees every table.
    Admin,
}

impl Role {
    /// Every role, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Member, Self::Admin];

    /// Returns its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// Returns the role of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// Returns the scopes that keys of a user with this role may have.
    #[must_use]
    pub fn scopes(self) -> Scopes {
        let scopes: &[Scope] = match self {
            Self::Viewer => &[Scope::Read],
            Self::Member => &[Scope::Read, Scope::Write],
            Self::Admin => &Scope::ALL,
        };
        scopes.iter().copied().collect()
    }

    /// Returns the narrowest role that has these scopes.
    #[must_use]
    pub fn of_scopes(scopes: Scopes) -> Self {
        let fits = |role: &Self| scopes.first_missing_from(role.scopes()).is_none();
        Self::ALL.into_iter().find(fits).unwrap_or(Self::Admin)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error: a key would have a scope that the role of its user lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{email} is a {role}, and this role lacks the {scope} scope: an administrator has to change the role first"
)]
pub struct RoleExceeded {
    /// E-mail address of the user.
    pub email: String,
    /// Role of the user.
    pub role: Role,
    /// The scope.
    pub scope: Scope,
}

impl Refuse for RoleExceeded {
    fn code(&self) -> ErrorCode {
        ErrorCode::RoleExceeded
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

/// Error: the organization would have no enabled administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is the last administrator: make another user an admin first")]
pub struct LastAdmin;

impl Refuse for LastAdmin {
    fn code(&self) -> ErrorCode {
        ErrorCode::LastAdmin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_names_that_read_back() {
        for (role, name) in [
            (Role::Viewer, "viewer"),
            (Role::Member, "member"),
            (Role::Admin, "admin"),
        ] {
            assert_eq!(role.to_string(), name);
            assert_eq!(Role::from_name(name), Some(role));
        }
        assert_eq!(Role::from_name("owner"), None);
    }

    #[test]
    fn a_wider_role_has_every_scope_of_a_narrower_one() {
        for pair in Role::ALL.windows(2) {
            let (narrow, wide) = (pair[0].scopes(), pair[1].scopes());
            assert_eq!(narrow.first_missing_from(wide), None);
            assert!(wide.first_missing_from(narrow).is_some());
        }
        assert_eq!(Role::Admin.scopes(), Scopes::all());
    }

    #[test]
    fn scopes_belong_to_the_narrowest_role_that_has_them() {
        for (scopes, role) in [
            (&[][..], Role::Viewer),
            (&[Scope::Read], Role::Viewer),
            (&[Scope::Write], Role::Member),
            (&[Scope::Admin], Role::Admin),
        ] {
            assert_eq!(Role::of_scopes(scopes.iter().copied().collect()), role);
        }
    }

    #[test]
    fn a_refusal_names_role_and_scope() {
        let refused = RoleExceeded {
            email: "ada@lab.example".to_owned(),
            role: Role::Viewer,
            scope: Scope::Write,
        };
        let text = refused.to_string();
        assert!(
            text.starts_with("ada@lab.example is a viewer, and this role lacks the write scope")
        );
    }
}
