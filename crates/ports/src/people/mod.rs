//! API keys.

pub mod groups;
pub mod invitations;
pub mod oidc;
pub mod sessions;
pub mod tenancy;

use async_trait::async_trait;
use labdata_domain::{
    ids::{ApiKeyId, ExecutionId, OrganizationId},
    people::{ApiKey, FoundKey, run_nonce::RunNonce},
};
use time::OffsetDateTime;

use crate::PortError;

/// Repository of API keys.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApiKeyRepository: Send + Sync {
    /// Stores a new key. Prefixes are unique on the platform.
    ///
    /// # Errors
    /// [`PortError::Conflict`] when the prefix is taken.
    async fn add(&self, key: &ApiKey) -> Result<(), PortError>;

    /// The key with that prefix in any organization: the organization follows from the key.
    /// Revoked and expired keys, and those of disabled users, are returned as well.
    async fn find_by_prefix(&self, prefix: &str) -> Result<Option<FoundKey>, PortError>;

    /// One of the organization's keys, also an ephemeral one.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(&self, organization: OrganizationId, id: ApiKeyId) -> Result<FoundKey, PortError>;

    /// The nonce of that attempt at an execution of any organization: the organization follows from the
    /// nonce. Used and expired nonces are returned as well.
    async fn find_run_nonce(
        &self,
        execution: ExecutionId,
        attempt: u32,
    ) -> Result<Option<RunNonce>, PortError>;

    /// The organization's keys, newest first, ephemeral ones left out.
    async fn list(&self, organization: OrganizationId) -> Result<Vec<ApiKey>, PortError>;

    /// Marks the key as revoked at that time; one that is revoked already stays as it is.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn revoke(
        &self,
        organization: OrganizationId,
        id: ApiKeyId,
        at: OffsetDateTime,
    ) -> Result<(), PortError>;

    /// Notes that keys were used, at those times; never moves a time back.
    async fn touch(&self, uses: &[(ApiKeyId, OffsetDateTime)]) -> Result<(), PortError>;
}
