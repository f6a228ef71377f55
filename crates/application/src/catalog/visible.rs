//! The catalog as callers see it. Use cases read this one in place of the store's.

use std::sync::Arc;

use labdata_domain::{
    catalog::{Catalog, Table},
    people::{
        actor::Actor,
        rights::{TableReadOnly, TableRight},
    },
    refusal::Resource,
};

use crate::{Error, Services};

/// The organization's current tables, without those that are hidden from the caller.
pub(crate) async fn visible_catalog(
    services: &Services,
    actor: &Actor,
) -> Result<Arc<Catalog>, Error> {
    let catalog = services.catalog.snapshot(actor.organization).await?;
    Ok(catalog.visible_to(&actor.rights))
}

/// A cached view, which may be stale, or a current one: as
/// [`CatalogStore::recent`](labdata_ports::catalog::CatalogStore::recent).
pub(crate) async fn recently_visible_catalog(
    services: &Services,
    actor: &Actor,
) -> Result<Arc<Catalog>, Error> {
    let catalog = services.catalog.recent(actor.organization).await?;
    Ok(catalog.visible_to(&actor.rights))
}

/// Refuses a table that the caller may read, but not write.
pub(crate) fn require_writable(actor: &Actor, table: &Table) -> Result<(), Error> {
    match actor.rights.on(table) {
        TableRight::Write => Ok(()),
        TableRight::None | TableRight::Read => {
            Err(Error::refused(TableReadOnly(table.name.clone())))
        }
    }
}

/// Refuses a table that the caller may not see: for the caller it does not exist.
pub(crate) fn require_visible(actor: &Actor, all: &Catalog, table: &str) -> Result<(), Error> {
    let table = all.table(table);
    let table = table.ok_or_else(|| Error::not_found(Resource::Table))?;
    match actor.rights.on(table) {
        TableRight::None => Err(Error::not_found(Resource::Table)),
        TableRight::Read | TableRight::Write => Ok(()),
    }
}

/// Returns whether the caller may see what a table of that name holds. Former tables are an administrator's
/// to see: whose they were is not known any more.
pub(crate) fn is_visible(actor: &Actor, catalog: &Catalog, table: &str) -> bool {
    actor.rights.see_everything() || catalog.table(table).is_some()
}
