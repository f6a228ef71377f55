//! Organizations and their users.

use time::OffsetDateTime;

use crate::ids::{OrganizationId, UserId};

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
}

/// Why an organization or a user cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTenant {
    /// The organization's name is blank or has control characters.
    #[error("an organization's name must not be blank")]
    OrganizationName,
    /// The text is no e-mail address.
    #[error("{0:?} is no e-mail address")]
    Email(String),
}

/// Checks the name of an organization, without white space around it.
///
/// # Errors
/// [`InvalidTenant::OrganizationName`].
pub fn check_organization_name(name: &str) -> Result<(), InvalidTenant> {
    if name.trim().is_empty() || name.contains(char::is_control) {
        Err(InvalidTenant::OrganizationName)
    } else {
        Ok(())
    }
}

/// Checks an e-mail address: it has an `@`, no white space and no control characters.
///
/// # Errors
/// [`InvalidTenant::Email`].
pub fn check_email(address: &str) -> Result<(), InvalidTenant> {
    let is_odd = |letter: char| letter.is_control() || letter.is_whitespace();
    if address.contains('@') && !address.contains(is_odd) {
        Ok(())
    } else {
        Err(InvalidTenant::Email(address.to_owned()))
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
