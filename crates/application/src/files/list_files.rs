//! Lists files.

use labdata_domain::{
    files::{File, FileFilter},
    page::{Page, PageRequest},
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Ports};

/// The organization's confirmed files that match, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_files(
    ports: &Ports,
    actor: &Actor,
    filter: &FileFilter,
    page: PageRequest,
) -> Result<Page<File>, Error> {
    actor.require(Scope::Read)?;
    Ok(ports.files.list(actor.organization, filter, page).await?)
}
