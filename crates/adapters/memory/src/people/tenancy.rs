//! Organizations and users in memory.

use async_trait::async_trait;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    people::{
        role::Role,
        tenancy::{Organization, User, UserChange, fold_email},
    },
    refusal::Resource,
};
use labdata_ports::{PortError, people::tenancy::TenancyRepository};
use time::OffsetDateTime;

use crate::{
    memory::{State, fake},
    paging::page,
};

fake!(
    /// Organizations and users in memory.
    pub struct InMemoryTenancyRepository;
);

impl State {
    /// A user with the groups of now.
    fn with_groups(&self, user: &User) -> User {
        User {
            groups: self.groups_of(user.id),
            ..user.clone()
        }
    }

    /// The user of the same organization with the same e-mail address.
    fn user_with_email(&self, candidate: &User) -> Option<&User> {
        self.users.iter().find(|user| {
            user.organization == candidate.organization
                && fold_email(&user.email) == fold_email(&candidate.email)
        })
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
        if let Some(found) = state.user_with_email(candidate) {
            return Ok(state.with_groups(found));
        }
        state.users.push(candidate.clone());
        Ok(state.with_groups(candidate))
    }

    async fn organizations(&self) -> Result<Vec<Organization>, PortError> {
        let mut organizations = self.memory.lock().organizations.clone();
        organizations.sort_by_key(|organization| (organization.created_at, organization.id));
        Ok(organizations)
    }

    async fn organization(&self, id: OrganizationId) -> Result<Organization, PortError> {
        let state = self.memory.lock();
        let mut organizations = state.organizations.iter();
        organizations
            .find(|organization| organization.id == id)
            .cloned()
            .ok_or(PortError::NotFound(Resource::Organization))
    }

    async fn add_user(&self, user: &User) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.require_organization(user.organization)?;
        if state.user_with_email(user).is_some() {
            return Err(PortError::Conflict(user.email_taken()));
        }
        state.users.push(user.clone());
        Ok(())
    }

    async fn user(&self, organization: OrganizationId, id: UserId) -> Result<User, PortError> {
        let state = self.memory.lock();
        let mut users = state.users.iter();
        users
            .find(|user| user.organization == organization && user.id == id)
            .map(|user| state.with_groups(user))
            .ok_or(PortError::NotFound(Resource::User))
    }

    async fn users(
        &self,
        organization: OrganizationId,
        request: PageRequest,
    ) -> Result<Page<User>, PortError> {
        let state = self.memory.lock();
        let users = state.users.iter();
        let own = users.filter(|user| user.organization == organization);
        let own = own.map(|user| state.with_groups(user));
        Ok(page(own, request, |user| Cursor {
            at: user.created_at,
            id: user.id.as_uuid(),
        }))
    }

    async fn enabled_admins(&self, organization: OrganizationId) -> Result<Vec<UserId>, PortError> {
        let state = self.memory.lock();
        let users = state.users.iter();
        let admins = users.filter(|user| {
            user.organization == organization
                && user.role == Role::Admin
                && user.disabled_at.is_none()
        });
        let mut admins: Vec<UserId> = admins.map(|user| user.id).collect();
        admins.sort_unstable();
        Ok(admins)
    }

    async fn enabled_admins_with(
        &self,
        organization: OrganizationId,
        id: UserId,
    ) -> Result<Vec<UserId>, PortError> {
        let mut admins = self.enabled_admins(organization).await?;
        if !admins.contains(&id) {
            admins.clear();
        }
        Ok(admins)
    }

    async fn update_user(
        &self,
        organization: OrganizationId,
        id: UserId,
        change: &UserChange,
        now: OffsetDateTime,
    ) -> Result<User, PortError> {
        let mut state = self.memory.lock();
        let mut users = state.users.iter_mut();
        let user = users
            .find(|user| user.organization == organization && user.id == id)
            .ok_or(PortError::NotFound(Resource::User))?;
        let changed = change.apply(user.clone(), now);
        *user = changed.clone();
        Ok(state.with_groups(&changed))
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
