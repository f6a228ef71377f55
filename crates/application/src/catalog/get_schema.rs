//! Shows the organization's tables.

use std::sync::Arc;

use labdata_domain::{
    catalog::Catalog,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services, catalog::visible::visible_catalog};

/// The organization's tables, then the core tables, as they stand now, and about how many rows or
/// points each of them holds.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_schema(
    services: &Services,
    actor: &Actor,
) -> Result<(Arc<Catalog>, Vec<u64>), Error> {
    actor.require(Scope::Read)?;
    let catalog = visible_catalog(services, actor).await?;
    let counts = services
        .data
        .row_counts(actor.organization, &catalog)
        .await?;
    Ok((catalog, counts))
}
