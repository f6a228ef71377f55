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
    services: &Services,
    actor: &Actor,
    filter: &FileFilter,
    page: PageRequest,
) -> Result<Held<Page<File>>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let value = services
        .files
        .list(actor.organization, filter, page)
        .await?;
    Ok(Held { value, slots })
}
