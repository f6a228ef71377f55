//! Organizations and the people in them.

use time::OffsetDateTime;

use crate::ids::{OrganizationId, UserId};

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name, unique on the platform.
    pub name: String,
    /// When it was created.
    pub created_at: OffsetDateTime,
}

/// A member of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The organization of which it is a member.
    pub organization: OrganizationId,
    /// The e-mail address, unique within the organization.
    pub email: String,
    /// A name for people; the e-mail address unless set.
    pub name: String,
}
