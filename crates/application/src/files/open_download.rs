//! Serves a signed download URL.

use std::ops::Range;

use labdata_domain::{ids::OrganizationId, refusal::Resource};
use labdata_ports::{
    PortError,
    files::blob::{ByteStream, DownloadGrant, Granted, SignatureError, SignedRequest},
};

use crate::Services;

/// Why a signed URL was not served.
#[derive(Debug, thiserror::Error)]
pub enum SignedUrlError {
    /// The request is not one that was signed, or not any more.
    #[error(transparent)]
    Refused(#[from] SignatureError),
    /// A port failed; [`PortError::NotFound`] when there is no such object.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An object that may be read.
#[derive(Clone, Debug)]
pub struct Download {
    organization: OrganizationId,
    /// Permission granted by the URL.
    pub grant: DownloadGrant,
    /// Size of the object in bytes.
    pub size: u64,
}

/// Checks a request to a signed download URL. The URL is the permission: there is no actor.
///
/// # Errors
/// [`SignedUrlError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn open_download(
    services: &Services,
    request: &SignedRequest<'_>,
) -> Result<Download, SignedUrlError> {
    match services.signer.verify(request, services.clock.now())? {
        Granted::Download(organization, grant) => {
            // The URL of a deleted file may work for some minutes more.
            if services
                .trash
                .holds_object(organization, grant.object)
                .await?
            {
                return Err(PortError::NotFound(Resource::Object).into());
            }
            let size = services.blobs.size(organization, grant.object).await?;
            Ok(Download {
                organization,
                grant,
                size,
            })
        }
        // An upload URL must not read, although its signature is valid.
        Granted::Upload(..) => Err(SignatureError::Mismatch.into()),
    }
}

impl Download {
    /// The bytes of that range.
    ///
    /// # Errors
    /// [`SignedUrlError::Port`].
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn read(
        &self,
        services: &Services,
        range: Range<u64>,
    ) -> Result<ByteStream, SignedUrlError> {
        let body = services
            .blobs
            .read(self.organization, self.grant.object, Some(range))
            .await?;
        Ok(body.bytes)
    }
}
