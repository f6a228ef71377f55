//! Signed URLs for uploads straight to a cloud.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use http::{HeaderName, HeaderValue, Method};
use labdata_domain::ids::OrganizationId;
use labdata_ports::{
    Clock, PortError,
    files::blob::{
        DownloadGrant, Granted, SignatureError, SignedRequest, SignedUpload, UploadGrant, UrlSigner,
    },
};
use object_store::{
    path::Path,
    signer::{SignedUrlOptions, Url},
};
use time::OffsetDateTime;

use crate::{Bucket, Cloud, GatewaySigner};

/// Signs uploads to a cloud. Downloads go through the gateway: no cloud's URL serves both HEAD and
/// GET, with `X-Content-Type-Options`. Uploads that a gateway signed before stay valid.
pub struct DirectSigner {
    bucket: Bucket,
    gateway: GatewaySigner,
    clock: Arc<dyn Clock>,
}

/// The bucket cannot take direct uploads; one line for the person who set that mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "uploads straight to Azure need the storage account's key: set AZURE_STORAGE_ACCOUNT_NAME and \
     AZURE_STORAGE_ACCOUNT_KEY, or LABDATA_UPLOAD_MODE=gateway"
)]
pub struct NeedsAccountKey;

impl DirectSigner {
    /// Creates a signer for a bucket.
    ///
    /// # Errors
    /// [`NeedsAccountKey`] for a container of Azure without the account's key.
    pub fn new(
        bucket: Bucket,
        gateway: GatewaySigner,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NeedsAccountKey> {
        if bucket.cloud == Cloud::Azure && bucket.sas.is_none() {
            return Err(NeedsAccountKey);
        }
        Ok(Self {
            bucket,
            gateway,
            clock,
        })
    }

    async fn url(
        &self,
        path: &Path,
        expires_at: OffsetDateTime,
        options: &SignedUrlOptions,
    ) -> Result<Url, PortError> {
        // The library signs for a period. Of a grant that has ended, the URL is refused at once.
        let left = Duration::try_from(expires_at - self.clock.now()).unwrap_or_default();
        self.bucket
            .urls
            .signed_url_opts(Method::PUT, path, left, options)
            .await
            .map_err(|error| PortError::Unavailable(format!("no URL can be signed: {error}")))
    }

    /// A URL of Azure that only creates.
    async fn sas(&self, path: &Path, expires_at: OffsetDateTime) -> Result<Url, PortError> {
        // The library knows the blob's URL; its signature is replaced.
        let blob = self.url(path, expires_at, &SignedUrlOptions::new()).await?;
        let sas = self.bucket.sas.as_ref();
        sas.and_then(|sas| sas.sign_creation(blob, expires_at))
            .ok_or_else(|| PortError::Internal(NeedsAccountKey.to_string()))
    }
}

#[async_trait]
impl UrlSigner for DirectSigner {
    async fn sign_upload(
        &self,
        organization: OrganizationId,
        grant: &UploadGrant,
    ) -> Result<SignedUpload, PortError> {
        let path = self.bucket.object_path(organization, grant.object);
        let content_type = grant.content_type.as_str();
        let range = format!("0,{}", grant.limit);
        let headers = match self.bucket.cloud {
            // The condition prevents overwriting; a limit of the size cannot be signed.
            Cloud::S3 => vec![("content-type", content_type), ("if-none-match", "*")],
            Cloud::Gcs => vec![
                ("content-type", content_type),
                ("x-goog-content-length-range", &range),
                // Generation 0 means that there is no such object: the URL cannot overwrite.
                ("x-goog-if-generation-match", "0"),
            ],
            Cloud::Azure => vec![
                ("content-type", content_type),
                ("x-ms-blob-type", "BlockBlob"),
            ],
        };
        let url = if self.bucket.cloud == Cloud::Azure {
            self.sas(&path, grant.expires_at).await?
        } else {
            let mut options = SignedUrlOptions::new();
            for (name, value) in &headers {
                let value = HeaderValue::from_str(value)
                    .map_err(|error| PortError::Internal(error.to_string()))?;
                options = options.with_signed_header(HeaderName::from_static(name), value);
            }
            self.url(&path, grant.expires_at, &options).await?
        };
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(SignedUpload {
            url: url.into(),
            headers: headers.collect(),
        })
    }

    async fn sign_download(
        &self,
        organization: OrganizationId,
        grant: &DownloadGrant,
    ) -> Result<String, PortError> {
        self.gateway.sign_download(organization, grant).await
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        now: OffsetDateTime,
    ) -> Result<Granted, SignatureError> {
        self.gateway.verify(request, now)
    }
}
