//! Definitions of an organization's tables.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{
    catalog::{Catalog, CatalogRefusal, Table, TableDefinition},
    ids::OrganizationId,
};
use time::OffsetDateTime;

use crate::PortError;

/// Failure to define or drop a table or a column.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// The definition is wrong, or stored rows forbid the change; for the person who asked.
    #[error(transparent)]
    Refused(#[from] CatalogRefusal),
    /// The port failed; [`PortError::NotFound`] when there is no such table.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Store of table definitions, and of the tables themselves.
#[async_trait]
pub trait CatalogStore: Send + Sync {
    /// The organization's current tables. Implementations may cache a snapshot, but MUST return one
    /// that is no older than the call.
    async fn snapshot(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError>;

    /// A cached snapshot, which may be stale, or a current one. A store that acts on a plan made
    /// with it MUST refuse a stale one ([`crate::data::WriteError::CatalogChanged`]); a caller
    /// reports problems only after checking with a current [`Self::snapshot`].
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    async fn recent(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError> {
        self.snapshot(organization).await
    }

    /// Creates or alters a table so that it is as defined
    /// ([`labdata_domain::catalog::CatalogChange::towards`] decides, given the current tables), and
    /// returns the result. A renamed table or column retains its data; references of other tables, filters of
    /// webhooks and what was recorded of writes follow a table's new name. Values of a column with a new type MUST be
    /// converted as [`Scalar::converted`](labdata_domain::scalar::Scalar::converted) does. The same
    /// definition again MUST change nothing. Racing calls and writes MUST wait for each other.
    ///
    /// # Errors
    /// [`DefineError::Refused`] if the definition is wrong or stored rows break it
    /// ([`CatalogRefusal::Violation`], [`CatalogRefusal::Inexact`]); nothing is changed then.
    async fn define(
        &self,
        organization: OrganizationId,
        definition: &TableDefinition,
        now: OffsetDateTime,
    ) -> Result<Arc<Table>, DefineError>;

    /// Drops a table if [`Catalog::check_drop`] allows it, given the current tables.
    ///
    /// # Errors
    /// [`DefineError::Refused`] with that refusal; [`PortError::NotFound`] if no table has the
    /// name.
    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
        now: OffsetDateTime,
    ) -> Result<(), DefineError>;

    /// Drops a column with its values if [`Table::column_to_drop`] and
    /// [`Table::check_dropped_values`] allow it, given the current tables.
    ///
    /// # Errors
    /// [`DefineError::Refused`] with that refusal; [`PortError::NotFound`] if no table, or no column
    /// of the table, has the name.
    async fn drop_column(
        &self,
        organization: OrganizationId,
        table: &str,
        column: &str,
        force: bool,
        now: OffsetDateTime,
    ) -> Result<(), DefineError>;
}
