//! Lists the trash.

use labdata_domain::{
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
    trash::TrashEntry,
};

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The organization's deleted files, and tables and columns that the caller could read, newest first.
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
    let slots = services.slots.enter(Work::Page, actor).await?;
    let mut value = services.trash.list(actor.organization, page).await?;
    value
        .items
        .retain(|entry| entry.is_visible_to(&actor.rights));
    Ok(Held { value, slots })
}
