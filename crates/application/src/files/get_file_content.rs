//! Shows a file: a URL to all of it, and its start as text.

use std::fmt;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use labdata_domain::{
    files::{
        DOWNLOAD_URL_LIFETIME, File, FileRefusal, FileState, ObjectKey,
        preview::{PREVIEW_BYTES, Preview, Skipped, is_previewed, preview},
    },
    ids::FileId,
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
};
use labdata_ports::{PortError, files::blob::DownloadGrant};

use crate::{Error, Services};

/// A file and how to get at its bytes.
#[derive(Clone)]
pub struct FileContent {
    /// Its record.
    pub file: File,
    /// Signed URL of the whole file, valid without a key until it expires.
    pub download_url: String,
    /// Its start as text.
    pub preview: Preview,
}

impl fmt::Debug for FileContent {
    /// Without the URL, which is a permission.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContent")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Shows a confirmed file.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` while the
/// file awaits its bytes.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_file_content(
    services: &Services,
    actor: &Actor,
    id: FileId,
) -> Result<FileContent, Error> {
    actor.require(Scope::Read)?;
    let file = services.files.get(actor.organization, id).await?;
    let FileState::Confirmed { object, bytes, .. } = file.state else {
        return Err(Error::refused(FileRefusal::NotConfirmed));
    };
    let preview = if is_previewed(bytes.size) {
        preview(&start(services, actor, object).await?, bytes.size)
    } else {
        Preview::Skipped(Skipped::TooLarge)
    };
    let grant = DownloadGrant {
        object,
        path: file.path.clone(),
        content_type: file.content_type.clone(),
        expires_at: services.clock.now() + DOWNLOAD_URL_LIFETIME,
    };
    let download_url = services
        .signer
        .sign_download(actor.organization, &grant)
        .await?;
    Ok(FileContent {
        file,
        download_url,
        preview,
    })
}

async fn start(services: &Services, actor: &Actor, object: ObjectKey) -> Result<Bytes, Error> {
    let range = Some(0..PREVIEW_BYTES);
    let body = match services.blobs.read(actor.organization, object, range).await {
        // A file that is deleted at this moment is as good as deleted before.
        Err(PortError::NotFound(_)) => return Err(Error::not_found(Resource::File)),
        read => read?,
    };
    let read = body
        .bytes
        .try_fold(BytesMut::new(), |mut start, chunk| async move {
            start.extend_from_slice(&chunk);
            Ok(start)
        });
    let start = read
        .await
        .map_err(|error| PortError::Unavailable(error.to_string()))?;
    Ok(start.freeze())
}
