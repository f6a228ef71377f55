//! Organizations and users.

use async_trait::async_trait;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    page::{Page, PageRequest},
    people::tenancy::{Organization, User, UserChange},
};
use time::OffsetDateTime;

use crate::PortError;

/// Repository of organizations and users.
#[async_trait]
pub trait TenancyRepository: Send + Sync {
    /// The organization of that name, created with its core tables when missing: `candidate` is
    /// stored then. Racing calls MUST end with one organization.
    async fn ensure_organization(
        &self,
        candidate: &Organization,
    ) -> Result<Organization, PortError>;

    /// The user of that e-mail address (compared without regard to case) in the candidate's
    /// organization, created when missing. Racing calls MUST end with one user.
    async fn ensure_user(&self, candidate: &User) -> Result<User, PortError>;

    /// Every organization of the platform, the oldest first. For operators: no API key sees it.
    async fn organizations(&self) -> Result<Vec<Organization>, PortError>;

    /// The organization of that id.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn organization(&self, id: OrganizationId) -> Result<Organization, PortError>;

    /// Stores a new user.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the organization has a user of that e-mail address (compared without
    /// regard to case).
    async fn add_user(&self, user: &User) -> Result<(), PortError>;

    /// One of the organization's users.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn user(&self, organization: OrganizationId, id: UserId) -> Result<User, PortError>;

    /// The organization's users, newest first.
    async fn users(
        &self,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<Page<User>, PortError>;

    /// The organization's administrators who are not disabled, in the order of their ids.
    async fn enabled_admins(&self, organization: OrganizationId) -> Result<Vec<UserId>, PortError>;

    /// The organization's administrators who are not disabled, in the order of their ids, if that user is one of
    /// them; otherwise none. Within a unit of work they MUST stay as they are until its end, so that of racing
    /// demotions one sees the other; a user who is none of them stays none.
    async fn enabled_admins_with(
        &self,
        organization: OrganizationId,
        id: UserId,
    ) -> Result<Vec<UserId>, PortError>;

    /// Changes a user at that time, and returns the user as stored then. Racing changes of different
    /// fields MUST all take effect.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn update_user(
        &self,
        organization: OrganizationId,
        id: UserId,
        change: &UserChange,
        now: OffsetDateTime,
    ) -> Result<User, PortError>;

    /// A secret of this platform for that purpose, made of `candidate` on first use and the same
    /// ever after on every server.
    async fn ensure_secret(
        &self,
        purpose: &str,
        candidate: &[u8; 32],
    ) -> Result<[u8; 32], PortError>;
}
