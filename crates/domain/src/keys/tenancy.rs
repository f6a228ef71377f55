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
