//! Reads a whole file.

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use labdata_domain::{
    files::{File, FileRefusal, FileState},
    ids::FileId,
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
};
use labdata_ports::PortError;

use crate::{Error, Services};

/// Reads a confirmed file; `None` if it has more than `max_bytes`.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` while the file
/// awaits its bytes.
pub(crate) async fn read_file(
    services: &Services,
    actor: &Actor,
    id: FileId,
    max_bytes: u64,
) -> Result<Option<(File, Bytes)>, Error> {
    actor.require(Scope::Read)?;
    let file = services.files.get(actor.organization, id).await?;
    let FileState::Confirmed { object, bytes, .. } = file.state else {
        return Err(Error::refused(FileRefusal::NotConfirmed));
    };
    if bytes.size > max_bytes {
        return Ok(None);
    }
    let body = match services.blobs.read(actor.organization, object, None).await {
        // A file that is deleted at this moment is as good as deleted before.
        Err(PortError::NotFound(_)) => return Err(Error::not_found(Resource::File)),
        read => read?,
    };
    let read = body
        .bytes
        .try_fold(BytesMut::new(), |mut whole, chunk| async move {
            whole.extend_from_slice(&chunk);
            Ok(whole)
        });
    let whole = read
        .await
        .map_err(|error| PortError::Unavailable(error.to_string()))?;
    Ok(Some((file, whole.freeze())))
}
