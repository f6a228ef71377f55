//! Invitations in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{InvitationId, OrganizationId},
    people::{ApiKeyHash, invitation::Invitation},
    refusal::Resource,
};
use labdata_ports::{PortError, people::invitations::InvitationRepository};
use time::OffsetDateTime;

use crate::memory::fake;

fake!(
    /// Invitations in memory.
    pub struct InMemoryInvitationRepository;
);

#[async_trait]
impl InvitationRepository for InMemoryInvitationRepository {
    async fn add(&self, invitation: &Invitation) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.require_user(invitation.organization, invitation.created_by)?;
        state.invitations.push(invitation.clone());
        Ok(())
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<Invitation>, PortError> {
        let state = self.memory.lock();
        let invitations = state.invitations.iter();
        let own = invitations.filter(|it| it.organization == organization);
        let mut invitations: Vec<Invitation> = own.cloned().collect();
        invitations.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.id)));
        Ok(invitations)
    }

    async fn remove(
        &self,
        organization: OrganizationId,
        id: InvitationId,
    ) -> Result<Invitation, PortError> {
        let mut state = self.memory.lock();
        let mut invitations = state.invitations.iter();
        let found = invitations.position(|it| it.organization == organization && it.id == id);
        let index = found.ok_or(PortError::NotFound(Resource::Invitation))?;
        Ok(state.invitations.swap_remove(index))
    }

    async fn find(&self, token: ApiKeyHash) -> Result<Option<Invitation>, PortError> {
        let state = self.memory.lock();
        let mut invitations = state.invitations.iter();
        Ok(invitations.find(|it| it.token.matches(&token)).cloned())
    }

    async fn remove_expired(&self, now: OffsetDateTime) -> Result<u64, PortError> {
        let mut state = self.memory.lock();
        let before = state.invitations.len();
        state.invitations.retain(|it| it.is_valid(now));
        Ok(u64::try_from(before - state.invitations.len()).unwrap_or(u64::MAX))
    }
}
