//! Lists the trash.

use labdata_domain::{
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
    trash::{TrashEntry, TrashKind},
};

use crate::{
    Error, Services,
    catalog::visible::visible_catalog,
    slots::{Held, Work},
};

/// The organization's deleted files, tables and columns, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_trash(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Held<Page<TrashEntry>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor.organization).await?;
    let mut value = services.trash.list(actor.organization, page).await?;
    if !actor.rights.see_everything() {
        // Who could see a table that is gone is not known, so that only those who see all tables see its name.
        let catalog = visible_catalog(services, actor).await?;
        let known = |name: &str| {
            name.split_once('.')
                .is_some_and(|(table, _)| catalog.table(table).is_some())
        };
        value.items.retain(|entry| match entry.kind {
            TrashKind::File => true,
            TrashKind::Table => false,
            TrashKind::Column => known(&entry.name),
        });
    }
    Ok(Held { value, slots })
}
