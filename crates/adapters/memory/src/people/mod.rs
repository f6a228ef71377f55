//! API keys in memory.

pub(crate) mod groups;
pub(crate) mod invitations;
pub(crate) mod oidc;
pub(crate) mod sessions;
pub(crate) mod tenancy;

use std::cmp::Reverse;

use async_trait::async_trait;
use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId},
    people::{ApiKey, FoundKey, role::Role, run_nonce::RunNonce},
    refusal::Resource,
    work::WorkId,
};
use labdata_ports::{PortError, people::ApiKeyRepository};
use time::OffsetDateTime;

use crate::memory::{State, fake};

fake!(
    /// API keys in memory.
    pub struct InMemoryApiKeyRepository;
);

impl State {
    /// The key, and since when its user is disabled.
    pub(crate) fn found(&self, key: &ApiKey) -> FoundKey {
        let user = self.users.iter().find(|user| user.id == key.user);
        FoundKey {
            key: key.clone(),
            user_disabled_at: user.and_then(|user| user.disabled_at),
            role: user.map_or(Role::Viewer, |user| user.role),
            groups: self.groups_of(key.user),
        }
    }

    /// Stores a new key.
    pub(crate) fn add_api_key(&mut self, key: &ApiKey) -> Result<(), PortError> {
        self.require_organization(key.organization)?;
        if self.api_keys.iter().any(|other| other.prefix == key.prefix) {
            return Err(PortError::Conflict(key.prefix_taken()));
        }
        self.api_keys.push(key.clone());
        Ok(())
    }
}

#[async_trait]
impl ApiKeyRepository for InMemoryApiKeyRepository {
    async fn add(&self, key: &ApiKey) -> Result<(), PortError> {
        self.memory.lock().add_api_key(key)
    }

    async fn find_by_prefix(&self, prefix: &str) -> Result<Option<FoundKey>, PortError> {
        let state = self.memory.lock();
        let key = state.api_keys.iter().find(|key| key.prefix == prefix);
        Ok(key.map(|key| state.found(key)))
    }

    async fn get(&self, organization: OrganizationId, id: ApiKeyId) -> Result<FoundKey, PortError> {
        let state = self.memory.lock();
        let mut keys = state.api_keys.iter();
        keys.find(|key| key.organization == organization && key.id == id)
            .map(|key| state.found(key))
            .ok_or(PortError::NotFound(Resource::ApiKey))
    }

    async fn find_run_nonce(
        &self,
        execution: ExecutionId,
        attempt: u32,
    ) -> Result<Option<RunNonce>, PortError> {
        let state = self.memory.lock();
        let nonce = state.work.get(&WorkId::Execution(execution));
        let nonce = nonce.and_then(|row| row.nonce.clone());
        Ok(nonce.filter(|nonce| nonce.attempt == attempt))
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<ApiKey>, PortError> {
        let state = self.memory.lock();
        let mut keys: Vec<ApiKey> = state
            .api_keys
            .iter()
            .filter(|key| key.organization == organization && key.execution.is_none())
            .cloned()
            .collect();
        keys.sort_by_key(|key| Reverse((key.created_at, key.id)));
        Ok(keys)
    }

    async fn revoke(
        &self,
        organization: OrganizationId,
        id: ApiKeyId,
        at: OffsetDateTime,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let key = state
            .api_keys
            .iter_mut()
            .find(|key| key.organization == organization && key.id == id)
            .ok_or(PortError::NotFound(Resource::ApiKey))?;
        key.revoke(at);
        Ok(())
    }

    async fn touch(&self, uses: &[(ApiKeyId, OffsetDateTime)]) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        for (id, at) in uses {
            if let Some(key) = state.api_keys.iter_mut().find(|key| key.id == *id) {
                key.note_use(*at);
            }
        }
        Ok(())
    }
}
