//! Serves a signed upload URL.

use std::sync::Arc;

use labdata_domain::{
    files::StoredBytes, ids::OrganizationId, refusal::Resource, storage::InsufficientStorage,
};
use labdata_ports::{
    PortError,
    files::blob::{ByteStream, Granted, PutBlobError, SignatureError, SignedRequest, UploadGrant},
};

use crate::{
    Services,
    files::{
        ongoing_uploads::OngoingUpload,
        open_download::SignedUrlError,
        upload_room::{NoRoom, checked, reserve},
    },
};

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
#[tracing::instrument(level = "debug", skip_all)]
pub async fn open_upload(
    services: &Services,
    request: &SignedRequest<'_>,
) -> Result<Upload, SignedUrlError> {
    match services.signer.verify(request, services.clock.now())? {
        Granted::Upload(organization, grant) => {
            let object = (organization, grant.object);
            // The record may have been deleted or replaced since the URL was signed.
            if !services.files.unreferenced(&[object]).await?.is_empty() {
                return Err(PortError::NotFound(Resource::Upload).into());
            }
            // The object of a file in the trash stays.
            if services
                .trash
                .holds_object(organization, grant.object)
                .await?
            {
                return Err(PortError::NotFound(Resource::Upload).into());
            }
            Ok(Upload {
                organization,
                grant,
            })
        }
        Granted::Download(..) => Err(SignatureError::Mismatch.into()),
    }
}

/// Upload that no other one of its object is under way beside, and that there is room for.
#[derive(Debug)]
pub struct AdmittedUpload {
    grant: UploadGrant,
    is_announced: bool,
    ongoing: Arc<OngoingUpload>,
}

/// Why nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// Another upload of the same object is under way.
    #[error("another upload of the same object is under way")]
    UnderWay,
    /// There is no room for it.
    #[error(transparent)]
    InsufficientStorage(InsufficientStorage),
    /// The bytes were not stored.
    #[error(transparent)]
    Blob(#[from] PutBlobError),
}

impl From<NoRoom> for UploadError {
    fn from(refusal: NoRoom) -> Self {
        match refusal {
            NoRoom::Insufficient(refusal) => Self::InsufficientStorage(refusal),
            NoRoom::Port(error) => Self::Blob(error.into()),
        }
    }
}

/// Admits an upload before its first byte is read. Its length is counted where it is announced.
///
/// # Errors
/// [`UploadError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn admit_upload(
    services: &Services,
    upload: &Upload,
    announced: Option<u64>,
) -> Result<AdmittedUpload, UploadError> {
    let UploadGrant { object, limit, .. } = upload.grant;
    // Refused before the body is read; `put_new` counts the bytes that arrive.
    if announced.is_some_and(|length| length > limit) {
        return Err(PutBlobError::TooLarge { limit }.into());
    }
    let ongoing = services.ongoing_uploads.begin(upload.organization, object);
    let ongoing = ongoing.ok_or(UploadError::UnderWay)?;
    reserve(services, &ongoing, announced.unwrap_or(0)).await?;
    Ok(AdmittedUpload {
        grant: upload.grant.clone(),
        is_announced: announced.is_some(),
        ongoing: Arc::new(ongoing),
    })
}

/// Stores the body, and retains what is known of it for the confirmation. Stops reading when there is no
/// room for more.
///
/// # Errors
/// [`UploadError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn receive_upload(
    services: &Services,
    upload: &AdmittedUpload,
    body: ByteStream,
) -> Result<StoredBytes, UploadError> {
    let UploadGrant { object, limit, .. } = upload.grant;
    let organization = upload.ongoing.organization();
    let (body, cut_off) = checked(services, &upload.ongoing, upload.is_announced, body);
    let stored = services
        .blobs
        .put_new(organization, object, body, limit)
        .await
        .map_err(|error| {
            cut_off
                // The store only sees a body that broke off; the reason is known here.
                .reason()
                .map_or_else(|| error.into(), UploadError::from)
        })?;
    let noted = services.files.note_received(organization, object, stored);
    // Not a failure: the note only saves the confirmation from reading the bytes.
    if let Err(error) = noted.await {
        tracing::warn!(%object, %error, "the confirmation will have to read what was uploaded");
    }
    Ok(stored)
}
