//! Definitions of an organization's tables.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{
    catalog::{Catalog, Table, TableDefinition},
    ids::OrganizationId,
};

use crate::PortError;

/// Why a table was not defined or dropped.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// The definition is wrong, or what is stored forbids it; for the person who asked.
    #[error("{0}")]
    Refused(String),
    /// The port failed; [`PortError::NotFound`] when there is no such table.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Where definitions of tables are kept, and carried out.
#[async_trait]
pub trait CatalogStore: Send + Sync {
    /// The organization's tables as they stand now. Implementations may keep a picture, but MUST
    /// return one that is no older than the call.
    async fn snapshot(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError>;

    /// A picture that may be out of date, without asking where one is at hand. Whoever acts on it
    /// must be told when it was ([`crate::data::WriteError::CatalogChanged`]); whoever finds fault
    /// by it asks for a [`Self::snapshot`] before saying so.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    async fn recent(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError> {
        self.snapshot(organization).await
    }

    /// Creates or alters a table so that it is as defined
    /// ([`labdata_domain::catalog::CatalogChange::towards`] against the tables as they stand at
    /// that moment), and returns it as it stands then. The same definition again MUST change
    /// nothing. Racing calls and writes MUST be safe: one waits for the other.
    ///
    /// # Errors
    /// [`DefineError::Refused`] when the definition is wrong, or stored data contradicts it; then
    /// nothing is changed.
    async fn define(
        &self,
        organization: OrganizationId,
        definition: &TableDefinition,
    ) -> Result<Arc<Table>, DefineError>;

    /// Drops a table. With `force` also when it holds rows.
    ///
    /// # Errors
    /// [`DefineError::Refused`] when another table references it, or it is not empty and `force`
    /// is not set; [`PortError::NotFound`] when there is none of that name.
    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
    ) -> Result<(), DefineError>;
}
