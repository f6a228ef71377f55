//! Values that the statements of one write or revert share.

use labdata_domain::{
    catalog::Catalog,
    ids::{ExecutionId, OrganizationId},
};
use time::OffsetDateTime;

use crate::database::sql::Schemas;

/// Values that the statements of one write or revert share.
pub(super) struct WriteContext<'w> {
    pub(super) organization: OrganizationId,
    pub(super) schemas: Schemas,
    pub(super) catalog: &'w Catalog,
    pub(super) execution: ExecutionId,
    pub(super) now: OffsetDateTime,
}
