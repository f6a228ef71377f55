//! The audit log.

use async_trait::async_trait;
use labdata_domain::{
    audit::{AuditEntry, AuditFilter, ChainEnd, NewAuditEntry},
    ids::OrganizationId,
    page::{Page, PageRequest},
};
use time::OffsetDateTime;

use crate::PortError;

/// The audit log of each organization: a chain of entries, to which entries are only added.
///
/// The store MUST refuse to change or delete an entry, through any of its connections.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends an entry to the organization's chain, with the names that its user and its key have now.
    /// Within a unit of work it is stored with that, and until then no other entry of the organization can be
    /// appended: racing calls MUST end with one chain.
    ///
    /// # Errors
    /// [`PortError::NotFound`] for an unknown organization.
    async fn append(
        &self,
        organization: OrganizationId,
        entry: NewAuditEntry,
    ) -> Result<(), PortError>;

    /// The entries that match, newest first.
    async fn list(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditEntry>, PortError>;

    /// Up to `limit` entries that match and come after that time, oldest first; `None` for the first ones.
    async fn list_after(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        after: Option<OffsetDateTime>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, PortError>;

    /// The recorded end of the organization's chain; `None` while it has no entry.
    async fn end(&self, organization: OrganizationId) -> Result<Option<ChainEnd>, PortError>;
}
