//! Values that the statements of one write or revert share.

use labdata_domain::{
    catalog::{Catalog, KeyedTable},
    ids::{ExecutionId, OrganizationId},
    people::rights::Rights,
};
use time::OffsetDateTime;

use super::history::Author;
use crate::database::{names::TableNames, sql::Schemas};

/// Values that the statements of one write or revert share.
pub(super) struct WriteContext<'w> {
    pub(super) organization: OrganizationId,
    pub(super) schemas: Schemas,
    pub(super) catalog: &'w Catalog,
    pub(super) execution: ExecutionId,
    /// What the caller may do to tables.
    pub(super) rights: &'w Rights,
    /// What changes are recorded under.
    pub(super) author: Author,
    pub(super) now: OffsetDateTime,
}

impl WriteContext<'_> {
    pub(super) fn names<'t>(&self, table: &'t KeyedTable) -> TableNames<'t> {
        self.schemas.names(table)
    }
}
