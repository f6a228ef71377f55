//! Organizations and their users.

use time::OffsetDateTime;

use crate::{
    conflict::Conflict,
    ids::{OrganizationId, UserId},
    names::is_one_line,
    people::{rights::Rights, role::Role},
    refusal::{ErrorCode, Refuse},
};

/// Maximum number of characters of a user's name.
pub const MAX_USER_NAME_LENGTH: usize = 200;
/// Maximum number of characters of an e-mail address (RFC 5321: 64 before the `@`, 255 after it).
pub const MAX_EMAIL_LENGTH: usize = 320;

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Id.
    pub id: OrganizationId,
    /// Name, unique on the platform.
    pub name: String,
    /// Creation time.
    pub created_at: OffsetDateTime,
}

/// A member of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Id.
    pub id: UserId,
    /// Organization of which it is a member.
    pub organization: OrganizationId,
    /// E-mail address, unique within the organization.
    pub email: String,
    /// Display name; the e-mail address unless set.
    pub name: String,
    /// Role: the ceiling of the rights of all keys and sessions.
    pub role: Role,
    /// Names of the groups to which the user belongs, sorted.
    pub groups: Vec<String>,
    /// Creation time.
    pub created_at: OffsetDateTime,
    /// Time since which the user is disabled.
    pub disabled_at: Option<OffsetDateTime>,
}

/// Change of a user. Fields that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// Display name.
    pub name: Option<String>,
    /// True disables the user, false enables the user again.
    pub disabled: Option<bool>,
    /// Role.
    pub role: Option<Role>,
}

impl UserChange {
    /// Returns the user as it is after the change. A user who is disabled already retains that time.
    #[must_use]
    pub fn apply(&self, user: User, now: OffsetDateTime) -> User {
        let disabled_at = match self.disabled {
            // Disabling a disabled user must not move the time.
            Some(true) => user.disabled_at.or(Some(now)),
            Some(false) => None,
            None => user.disabled_at,
        };
        User {
            name: self.name.clone().unwrap_or(user.name),
            role: self.role.unwrap_or(user.role),
            disabled_at,
            ..user
        }
    }
}

impl UserChange {
    /// Returns whether a user who is an enabled administrator is none after the change.
    #[must_use]
    pub fn takes_administration(&self) -> bool {
        self.disabled == Some(true) || self.role.is_some_and(|role| role != Role::Admin)
    }
}

impl User {
    /// Rights of the user, with a key that is not narrowed.
    #[must_use]
    pub fn rights(&self) -> Rights {
        Rights::of(self.role, self.groups.iter().cloned())
    }

    /// The conflict of a user whose e-mail address another one of the organization has.
    #[must_use]
    pub fn email_taken(&self) -> Conflict {
        Conflict::UserEmail(self.email.clone())
    }
}

/// Error: a key would belong to a disabled user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this user is disabled: enable the user first")]
pub struct UserDisabled;

impl Refuse for UserDisabled {
    fn code(&self) -> ErrorCode {
        ErrorCode::UserDisabled
    }
}

/// Refusal of a run whose rights are those of a disabled user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunUserDisabled {
    /// A trigger started it; the user wrote the version of the script.
    #[error(
        "{email}, who wrote version {version} of this script, is disabled, and what a trigger starts has the \
         rights of its author: enable that user, or let another one save the script"
    )]
    Author {
        /// The user's e-mail address.
        email: String,
        /// The version.
        version: u32,
    },
    /// The user started it.
    #[error("{0}, who started this run, is disabled: let another user start it")]
    Starter(String),
}

/// Error: an administrator would disable the user to whom the presented key belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this API key belongs to that user: another administrator has to disable them")]
pub struct DisablesSelf;

impl Refuse for DisablesSelf {
    fn code(&self) -> ErrorCode {
        ErrorCode::DisablesSelf
    }
}

/// Why an organization or a user cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTenant {
    /// The organization's name is blank or has control characters.
    #[error("an organization's name must not be blank")]
    OrganizationName,
    /// The user's name is blank.
    #[error("a user's name must not be blank")]
    UserName,
    /// The text is no e-mail address.
    #[error("{0:?} is no e-mail address")]
    Email(String),
}

impl Refuse for InvalidTenant {
    fn code(&self) -> ErrorCode {
        match self {
            Self::OrganizationName | Self::UserName => ErrorCode::InvalidName,
            Self::Email(_) => ErrorCode::InvalidEmail,
        }
    }
}

/// Checks the name of an organization, without white space around it.
///
/// # Errors
/// [`InvalidTenant::OrganizationName`].
pub fn check_organization_name(name: &str) -> Result<(), InvalidTenant> {
    if is_one_line(name) {
        Ok(())
    } else {
        Err(InvalidTenant::OrganizationName)
    }
}

/// Regular expression of e-mail addresses: an `@`, no white space, no control characters.
pub const EMAIL_PATTERN: &str =
    r"^[^\s\u0000-\u001F\u007F-\u009F]*@[^\s\u0000-\u001F\u007F-\u009F]*$";

/// Checks an e-mail address: it has an `@`, no white space and no control characters.
///
/// # Errors
/// [`InvalidTenant::Email`].
pub fn check_email(address: &str) -> Result<(), InvalidTenant> {
    let is_odd = |letter: char| letter.is_control() || letter.is_whitespace();
    // Stricter rules refuse valid addresses; only a delivered e-mail proves one.
    if address.contains('@') && !address.contains(is_odd) {
        Ok(())
    } else {
        Err(InvalidTenant::Email(address.to_owned()))
    }
}

/// Checks the display name of a user.
///
/// # Errors
/// [`InvalidTenant::UserName`].
pub fn check_user_name(name: &str) -> Result<(), InvalidTenant> {
    if name.trim().is_empty() {
        Err(InvalidTenant::UserName)
    } else {
        Ok(())
    }
}

/// An e-mail address as it is compared: without regard to case.
#[must_use]
pub fn fold_email(address: &str) -> String {
    address.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_has_a_name_that_can_be_read() {
        assert_eq!(check_organization_name("Lab 1"), Ok(()));
        for name in ["", " ", "a\nb"] {
            assert_eq!(
                check_organization_name(name),
                Err(InvalidTenant::OrganizationName),
                "{name:?}"
            );
        }
    }

    fn ada(disabled_at: Option<OffsetDateTime>) -> User {
        User {
            id: UserId::new(uuid::Uuid::nil()),
            organization: OrganizationId::new(uuid::Uuid::nil()),
            email: "ada@lab.example".to_owned(),
            name: "Ada".to_owned(),
            role: Role::Member,
            groups: Vec::new(),
            created_at: OffsetDateTime::UNIX_EPOCH,
            disabled_at,
        }
    }

    #[test]
    fn a_user_is_disabled_once_and_enabled_again() {
        let first = OffsetDateTime::UNIX_EPOCH + time::Duration::days(1);
        let later = first + time::Duration::days(1);
        let disable = UserChange {
            name: None,
            disabled: Some(true),
            ..UserChange::default()
        };
        let disabled = disable.apply(ada(None), first);
        assert_eq!(disabled, ada(Some(first)));
        assert_eq!(disable.apply(disabled.clone(), later), disabled);
        let enable = UserChange {
            name: None,
            disabled: Some(false),
            ..UserChange::default()
        };
        assert_eq!(enable.apply(disabled, later), ada(None));
    }

    #[test]
    fn a_change_of_the_name_keeps_the_user_disabled() {
        let since = Some(OffsetDateTime::UNIX_EPOCH);
        let change = UserChange {
            name: Some("Ada L.".to_owned()),
            disabled: None,
            ..UserChange::default()
        };
        let renamed = change.apply(ada(since), OffsetDateTime::UNIX_EPOCH);
        assert_eq!(
            (renamed.name.as_str(), renamed.disabled_at),
            ("Ada L.", since)
        );
    }

    #[test]
    fn a_demoted_or_disabled_administrator_is_none() {
        let role = |role| UserChange {
            role: Some(role),
            ..UserChange::default()
        };
        assert!(role(Role::Member).takes_administration());
        assert!(role(Role::Viewer).takes_administration());
        assert!(!role(Role::Admin).takes_administration());
        let disable = |disabled| UserChange {
            disabled: Some(disabled),
            ..UserChange::default()
        };
        assert!(disable(true).takes_administration());
        assert!(!disable(false).takes_administration());
        assert!(!UserChange::default().takes_administration());
        let demoted = role(Role::Viewer).apply(ada(None), OffsetDateTime::UNIX_EPOCH);
        assert_eq!((demoted.role, demoted.disabled_at), (Role::Viewer, None));
    }

    #[test]
    fn a_user_has_a_name_that_can_be_read() {
        assert_eq!(check_user_name("Ada"), Ok(()));
        for name in ["", " \t"] {
            assert_eq!(check_user_name(name), Err(InvalidTenant::UserName));
        }
    }

    #[test]
    fn an_address_has_an_at_sign_and_no_white_space() {
        assert_eq!(check_email("ada@lab.example"), Ok(()));
        for address in ["", "ada", "a da@lab.example", "ada@lab\u{0}"] {
            assert_eq!(
                check_email(address),
                Err(InvalidTenant::Email(address.to_owned()))
            );
        }
    }

    #[test]
    fn addresses_are_compared_without_regard_to_case() {
        assert_eq!(fold_email("Ada@Lab.Example"), fold_email("ada@lab.example"));
        assert_eq!(fold_email("ÄDA@lab.example"), fold_email("äda@lab.example"));
        assert_ne!(fold_email("ada@lab.example"), fold_email("ida@lab.example"));
    }
}
