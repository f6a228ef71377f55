//! Serves a signed upload URL.

use labdata_domain::{files::StoredBytes, ids::OrganizationId};
use labdata_ports::{
    PortError,
    files::blob::{ByteStream, Granted, PutBlobError, SignatureError, SignedRequest, UploadGrant},
};

use crate::{Ports, files::open_download::SignedUrlError};

/// An object that may be created.
#[derive(Clone, Debug)]
pub struct Upload {
    organization: OrganizationId,
    /// Permission granted by the URL.
    pub grant: UploadGrant,
}

/// Checks a request to a signed upload URL, before its body is read. The URL is the permission:
/// there is no actor.
///
/// A URL serves its file alone: once the file is discarded or deleted, or a fresh URL was given out
/// for it, nothing would ever refer to what is sent.
///
/// # Errors
/// [`SignedUrlError`]; [`PortError::NotFound`] where no file has or awaits the object (any more).
pub async fn open_upload(
    ports: &Ports,
    request: &SignedRequest<'_>,
) -> Result<Upload, SignedUrlError> {
    match ports.signer.verify(request, ports.clock.now())? {
        Granted::Upload(organization, grant) => {
            let object = (organization, grant.object);
            if !ports.files.unreferenced(&[object]).await?.is_empty() {
                return Err(PortError::NotFound("upload").into());
            }
            Ok(Upload {
                organization,
                grant,
            })
        }
        Granted::Download(..) => Err(SignatureError::Mismatch.into()),
    }
}

/// Stores the body, and keeps what is known of it for the confirmation.
///
/// # Errors
/// [`PutBlobError`].
pub async fn receive_upload(
    ports: &Ports,
    upload: &Upload,
    body: ByteStream,
) -> Result<StoredBytes, PutBlobError> {
    let UploadGrant { object, limit, .. } = upload.grant;
    let organization = upload.organization;
    let stored = ports
        .blobs
        .put_new(organization, object, body, limit)
        .await?;
    let noted = ports.files.note_received(organization, object, stored);
    if let Err(error) = noted.await {
        tracing::warn!(%object, %error, "the confirmation will have to read what was uploaded");
    }
    Ok(stored)
}
