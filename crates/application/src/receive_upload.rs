//! Serves a signed upload URL.

use labdata_domain::{file::StoredBytes, ids::OrganizationId};
use labdata_ports::blob::{
    ByteStream, Granted, PutBlobError, SignatureError, SignedRequest, UploadGrant,
};

use crate::Ports;

/// An object that may be created.
#[derive(Clone, Debug)]
pub struct Upload {
    organization: OrganizationId,
    /// What the URL permits.
    pub grant: UploadGrant,
}

/// Checks a request to a signed upload URL, before its body is read. The URL is the permission:
/// there is no actor.
///
/// # Errors
/// [`SignatureError`].
pub fn open_upload(ports: &Ports, request: &SignedRequest<'_>) -> Result<Upload, SignatureError> {
    match ports.signer.verify(request, ports.clock.now())? {
        Granted::Upload(organization, grant) => Ok(Upload {
            organization,
            grant,
        }),
        Granted::Download(..) => Err(SignatureError::Mismatch),
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
