//! Organizations and users in memory.

use async_trait::async_trait;
use labdata_domain::keys::tenancy::{Organization, User, fold_email};
use labdata_ports::{PortError, keys::tenancy::TenancyRepository};

use crate::Memory;

/// Organizations and users in memory.
#[derive(Clone, Debug)]
pub struct InMemoryTenancyRepository {
    memory: Memory,
}

impl InMemoryTenancyRepository {
    /// The repository over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

#[async_trait]
impl TenancyRepository for InMemoryTenancyRepository {
    async fn ensure_organization(
        &self,
        candidate: &Organization,
    ) -> Result<Organization, PortError> {
        let mut state = self.memory.lock();
        if let Some(found) = state
            .organizations
            .iter()
            .find(|found| found.name == candidate.name)
        {
            return Ok(found.clone());
        }
        state.organizations.push(candidate.clone());
        Ok(candidate.clone())
    }

    async fn ensure_user(&self, candidate: &User) -> Result<User, PortError> {
        let mut state = self.memory.lock();
        state.require_organization(candidate.organization)?;
        let same = |user: &&User| {
            user.organization == candidate.organization
                && fold_email(&user.email) == fold_email(&candidate.email)
        };
        if let Some(found) = state.users.iter().find(same) {
            return Ok(found.clone());
        }
        state.users.push(candidate.clone());
        Ok(candidate.clone())
    }

    async fn organizations(&self) -> Result<Vec<Organization>, PortError> {
        let mut organizations = self.memory.lock().organizations.clone();
        organizations.sort_by_key(|organization| (organization.created_at, organization.id));
        Ok(organizations)
    }

    async fn ensure_secret(
        &self,
        purpose: &str,
        candidate: &[u8; 32],
    ) -> Result<[u8; 32], PortError> {
        Ok(*self
            .memory
            .lock()
            .secrets
            .entry(purpose.to_owned())
            .or_insert(*candidate))
    }
}
