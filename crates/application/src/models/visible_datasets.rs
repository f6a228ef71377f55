//! Datasets as callers see them. Use cases that act for a caller read these in place of the repository's.

use labdata_domain::{
    ids::DatasetId,
    models::Dataset,
    people::{actor::Actor, visible_tables::VisibleTables},
    refusal::Resource,
};
use labdata_ports::PortError;

use crate::{Error, Services};

/// The tables that the caller may see, those in the trash too.
pub(crate) async fn visible_tables(
    services: &Services,
    actor: &Actor,
) -> Result<VisibleTables, PortError> {
    // Those who see everything need no look at catalog and trash.
    if actor.rights.see_everything() {
        return Ok(VisibleTables::All);
    }
    // The catalog first: a table that is dropped in between is seen twice, rather than not at all.
    let catalog = services.catalog.snapshot(actor.organization).await?;
    let trash = services.trash.tables(actor.organization).await?;
    Ok(VisibleTables::of(&actor.rights, &catalog, &trash))
}

/// A dataset. One that names a table which is hidden from the caller does not exist for the caller.
pub(super) async fn visible_dataset(
    services: &Services,
    actor: &Actor,
    id: DatasetId,
) -> Result<Dataset, Error> {
    let dataset = find_visible_dataset(services, actor, id).await?;
    dataset.ok_or_else(|| Error::not_found(Resource::Dataset))
}

/// The same, or `None` for a dataset that is hidden from the caller.
pub(super) async fn find_visible_dataset(
    services: &Services,
    actor: &Actor,
    id: DatasetId,
) -> Result<Option<Dataset>, Error> {
    let dataset = services.datasets.get(actor.organization, id).await?;
    let is_visible = dataset.tables.is_empty()
        || visible_tables(services, actor)
            .await?
            .include_all(&dataset.tables);
    Ok(Some(dataset).filter(|_| is_visible))
}
