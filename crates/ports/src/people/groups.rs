//! Groups of users.

use async_trait::async_trait;
use labdata_domain::{
    ids::{GroupId, OrganizationId, UserId},
    people::group::{Group, GroupChange},
};

use crate::PortError;

/// Repository of groups. Every change of their names, and none other, is a new version of the organization's
/// catalog, which names them.
#[async_trait]
pub trait GroupRepository: Send + Sync {
    /// Stores a new group.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the organization has a group of that name; [`PortError::NotFound`] when a
    /// member is none of its users.
    async fn add(&self, group: &Group) -> Result<(), PortError>;

    /// One of the organization's groups.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: GroupId) -> Result<Group, PortError>;

    /// The organization's groups, by their names.
    async fn list(&self, organization: OrganizationId) -> Result<Vec<Group>, PortError>;

    /// Changes a group, and returns it as stored then. Racing changes of different fields MUST all take
    /// effect.
    ///
    /// # Errors
    /// As [`Self::add`], and [`PortError::NotFound`] if the group does not exist.
    async fn update(
        &self,
        organization: OrganizationId,
        id: GroupId,
        change: &GroupChange,
    ) -> Result<Group, PortError>;

    /// Adds a user to a group, and returns the group as stored then; `None` if the user is a member already. Racing
    /// additions MUST all take effect, and a racing [`Self::update`] MUST come before or after the whole of it.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when the group or the user does not exist.
    async fn add_member(
        &self,
        organization: OrganizationId,
        id: GroupId,
        user: UserId,
    ) -> Result<Option<Group>, PortError>;

    /// Removes a group with its memberships.
    ///
    /// # Errors
    /// [`PortError::NotFound`]; [`PortError::Conflict`] while the access of a table names it.
    async fn remove(&self, organization: OrganizationId, id: GroupId) -> Result<(), PortError>;
}
