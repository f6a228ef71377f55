//! Invitations.

use async_trait::async_trait;
use labdata_domain::{
    ids::{InvitationId, OrganizationId},
    people::{ApiKeyHash, invitation::Invitation},
};
use time::OffsetDateTime;

use crate::PortError;

/// Repository of pending invitations.
#[async_trait]
pub trait InvitationRepository: Send + Sync {
    /// Stores a new invitation.
    ///
    /// # Errors
    /// [`PortError::NotFound`] when its maker is none of the organization's users.
    async fn add(&self, invitation: &Invitation) -> Result<(), PortError>;

    /// The organization's invitations, newest first, expired ones too.
    async fn list(&self, organization: OrganizationId) -> Result<Vec<Invitation>, PortError>;

    /// Removes one of the organization's invitations, and returns it.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn remove(
        &self,
        organization: OrganizationId,
        id: InvitationId,
    ) -> Result<Invitation, PortError>;

    /// The invitation of that token in any organization: the organization follows from the token. An expired
    /// one is returned as well.
    async fn find(&self, token: ApiKeyHash) -> Result<Option<Invitation>, PortError>;

    /// Removes the invitations of every organization that have expired by then; returns their number.
    async fn remove_expired(&self, now: OffsetDateTime) -> Result<u64, PortError>;
}
