//! Shows a file.

use labdata_domain::{
    files::{File, FileRefusal, FileState},
    ids::FileId,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// One of the organization's confirmed files.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` while the
/// file awaits its bytes.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_file(services: &Services, actor: &Actor, id: FileId) -> Result<File, Error> {
    actor.require(Scope::Read)?;
    let file = services.files.get(actor.organization, id).await?;
    match file.state {
        FileState::Confirmed { .. } => Ok(file),
        FileState::AwaitingBytes { .. } => Err(Error::refused(FileRefusal::NotConfirmed)),
    }
}
