//! Shows the organization's tables.

use std::sync::Arc;

use labdata_domain::{actor::Actor, catalog::Catalog, scope::Scope};

use crate::{Error, Ports};

/// The organization's tables, then the core tables, as they stand now.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope.
pub async fn get_schema(ports: &Ports, actor: &Actor) -> Result<Arc<Catalog>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.catalog.snapshot(actor.organization).await?)
}
