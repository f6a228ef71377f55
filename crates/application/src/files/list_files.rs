//! Lists files.

use labdata_domain::{
    files::{File, FileFilter},
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The organization's confirmed files that match, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_files(
    ports: &Services,
    actor: &Actor,
    filter: &FileFilter,
    page: PageRequest,
) -> Result<Held<Page<File>>, Error> {
    actor.require(Scope::Read)?;
    let slots = ports.slots.enter(Work::Page, actor.organization).await?;
    let value = ports.files.list(actor.organization, filter, page).await?;
    Ok(Held { value, slots })
}
