//! Objects in a bucket of a cloud.

use std::{
    io::{Seek, Write},
    ops::Range,
    path::PathBuf,
};

use async_trait::async_trait;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use futures::{
    StreamExt, TryStreamExt,
    stream::{BoxStream, Fuse},
};
use http::{HeaderName, HeaderValue, Method, Request};
use labdata_domain::{
    files::{Crc32c, ObjectKey, StoredBytes},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BlobReader, BlobStore, ByteStream, PutBlobError},
};
use object_store::{
    CopyMode, CopyOptions, Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutPayload,
    client::{HttpRequestBody, HttpService},
    path::Path,
    signer::SignedUrlOptions,
};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use crate::{
    Cloud,
    bucket::{Bucket, random_name},
    local::{blocking, disk_space, port_error},
    reading,
};

/// Size of a part of an upload in bytes, the minimum of S3. Up to two parts of a body are in memory.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// Lifetime of URLs that only this program uses.
const OWN_URL: std::time::Duration = std::time::Duration::from_mins(1);

/// Objects in a bucket.
///
/// A body that fits into one part is created in one request. A longer one is uploaded to `incoming/`
/// in parts, and the cloud then copies it to its path, unless that exists: no cloud but S3 can
/// complete a multipart upload on that condition.
pub struct CloudBlobStore {
    bucket: Bucket,
    /// Directory of copies of objects that are read from any position.
    copies: PathBuf,
}

impl CloudBlobStore {
    /// Creates the store over a bucket. Objects that are read from any position are copied to unnamed
    /// files of the directory, which exist as long as they are read.
    #[must_use]
    pub const fn new(bucket: Bucket, copies: PathBuf) -> Self {
        Self { bucket, copies }
    }

    fn store(&self) -> &dyn ObjectStore {
        &*self.bucket.store
    }

    async fn put_parts(
        &self,
        path: &Path,
        first: Vec<Bytes>,
        body: &mut Body,
    ) -> Result<(), PutBlobError> {
        // Saves the upload of a body that would be refused at the end.
        match self.store().head(path).await {
            Ok(_) => return Err(PutBlobError::Exists),
            Err(Error::NotFound { .. }) => {}
            Err(failed) => return Err(reading::error(failed).into()),
        }
        let incoming = self.bucket.incoming().join(random_name());
        let upload = self.store().put_multipart(&incoming).await;
        let mut upload = PendingUpload(Some(upload.map_err(reading::error)?));
        let mut part = first;
        while !part.is_empty() {
            // One part is sent while the next one is gathered.
            let sending = upload.put_part(PutPayload::from_iter(part))?;
            let (sent, next) = tokio::join!(sending, body.gather());
            sent.map_err(reading::error)?;
            part = next?;
        }
        upload.complete().await?;
        let outcome = self.publish(&incoming, path, body.size).await;
        if let Err(error) = self.store().delete(&incoming).await {
            tracing::warn!(%error, "could not remove an incomplete upload; the sweeper will");
        }
        outcome
    }

    async fn publish(&self, incoming: &Path, path: &Path, size: u64) -> Result<(), PutBlobError> {
        let create = CopyOptions::new().with_mode(CopyMode::Create);
        match self.store().copy_opts(incoming, path, create).await {
            Ok(()) => {}
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                return Err(PutBlobError::Exists);
            }
            Err(failed) => return Err(reading::error(failed).into()),
        }
        // The copy is the cloud's: an object counts only if all of its bytes arrived.
        let copied = reading::size(self.store(), path).await?;
        if copied == size {
            return Ok(());
        }
        // Objects are never overwritten, so another attempt needs the key to be free.
        reading::delete(self.store(), path).await?;
        let text = format!("the file storage copied {copied} of {size} bytes");
        Err(PortError::Unavailable(text).into())
    }

    /// The CRC-32C that the cloud recorded, if it reports one.
    async fn recorded(&self, path: &Path) -> Option<Crc32c> {
        let (request_header, response_header) = match self.bucket.cloud {
            Cloud::S3 => (
                Some(("x-amz-checksum-mode", "ENABLED")),
                "x-amz-checksum-crc32c",
            ),
            Cloud::Gcs => (None, "x-goog-hash"),
            // Azure records an MD5 at most.
            Cloud::Azure => return None,
        };
        let mut options = SignedUrlOptions::new();
        let mut request = Request::builder().method(Method::HEAD);
        if let Some((name, value)) = request_header {
            let (name, value) = (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
            options = options.with_signed_header(name.clone(), value.clone());
            request = request.header(name, value);
        }
        let signed = self
            .bucket
            .urls
            .signed_url_opts(Method::HEAD, path, OWN_URL, &options);
        // Any failure leads to reading the object, which takes longer but needs no support by the cloud.
        let url = signed.await.ok()?;
        let request = request
            .uri(url.as_str())
            .body(HttpRequestBody::empty())
            .ok()?;
        let response = self.bucket.client.call(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let reported = response.headers().get_all(response_header).iter();
        let mut values = reported.filter_map(|value| value.to_str().ok());
        match self.bucket.cloud {
            Cloud::Gcs => values
                // Google reports several hashes, in one header or in several.
                .flat_map(|value| value.split(','))
                .find_map(|hash| hash.trim().strip_prefix("crc32c="))
                .and_then(Crc32c::from_base64),
            Cloud::S3 | Cloud::Azure => values.next().and_then(Crc32c::from_base64),
        }
    }
}

#[async_trait]
impl BlobStore for CloudBlobStore {
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError> {
        let path = self.bucket.object_path(organization, object);
        let mut body = Body {
            // A stream must not be polled after its end.
            chunks: body.fuse(),
            limit,
            size: 0,
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            ended: false,
        };
        let first = body.gather().await?;
        // A single request is atomic and conditional, so `incoming/` is not needed.
        if body.ended {
            let payload = PutPayload::from_iter(first);
            match self
                .store()
                .put_opts(&path, payload, PutMode::Create.into())
                .await
            {
                Ok(_) => {}
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                    return Err(PutBlobError::Exists);
                }
                Err(failed) => return Err(reading::error(failed).into()),
            }
        } else {
            self.put_parts(&path, first, &mut body).await?;
        }
        let crc32c = reading::crc32c(&body.digest)
            .map_err(|error| PortError::Internal(error.to_string()))?;
        Ok(StoredBytes {
            size: body.size,
            crc32c,
        })
    }

    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError> {
        reading::read(
            self.store(),
            &self.bucket.object_path(organization, object),
            range,
        )
        .await
    }

    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError> {
        let mut body = self.read(organization, object, None).await?;
        let (directory, size) = (self.copies.clone(), body.size);
        let create = move || {
            std::fs::create_dir_all(&directory)?;
            // A large object could otherwise fill the disk that the database may be on.
            let space = disk_space(&directory)?;
            let has_room = space.check(size).is_ok();
            has_room
                .then(|| tempfile::tempfile_in(&directory))
                .transpose()
        };
        let file = blocking(create).await.map_err(port_error)?;
        let mut file = file.ok_or_else(|| {
            PortError::DiskFull("the disk has no room for a copy of an object".to_owned())
        })?;
        while let Some(chunk) = body.bytes.next().await {
            let chunk = chunk.map_err(|error| PortError::Unavailable(error.to_string()))?;
            let write = move || file.write_all(&chunk).map(|()| file);
            file = blocking(write).await.map_err(port_error)?;
        }
        let rewind = move || file.rewind().map(|()| file);
        Ok(Box::new(blocking(rewind).await.map_err(port_error)?))
    }

    async fn size(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<u64, PortError> {
        reading::size(self.store(), &self.bucket.object_path(organization, object)).await
    }

    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError> {
        let path = self.bucket.object_path(organization, object);
        if let Some(crc32c) = self.recorded(&path).await {
            let size = reading::size(self.store(), &path).await?;
            return Ok(StoredBytes { size, crc32c });
        }
        reading::checksum(self.store(), &path).await
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError> {
        reading::delete(self.store(), &self.bucket.object_path(organization, object)).await
    }

    async fn sweep_unfinished(&self, begun_before: OffsetDateTime) -> Result<u64, PortError> {
        let incoming = self.bucket.incoming();
        let mut listed = self.store().list(Some(&incoming));
        let mut removed = 0;
        while let Some(found) = listed.try_next().await.map_err(reading::error)? {
            if found.last_modified.timestamp() < begun_before.unix_timestamp() {
                reading::delete(self.store(), &found.location).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>> {
        reading::objects(self.store(), &self.bucket.prefix)
    }

    async fn probe(&self) -> Result<(), PortError> {
        let nothing = self.bucket.incoming().join("probe");
        match self.store().head(&nothing).await {
            // A response about a missing object proves access without writing one each time.
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(failed) => Err(reading::error(failed)),
        }
    }
}

/// A body being received.
struct Body {
    chunks: Fuse<ByteStream>,
    limit: u64,
    size: u64,
    digest: Digest,
    ended: bool,
}

impl Body {
    /// Reads a part; only the last one is shorter.
    async fn gather(&mut self) -> Result<Vec<Bytes>, PutBlobError> {
        let mut part = Vec::new();
        let mut gathered = 0;
        while gathered < PART_BYTES {
            let Some(chunk) = self.chunks.next().await else {
                self.ended = true;
                break;
            };
            let chunk = chunk?;
            let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            self.size = self.size.saturating_add(length);
            if self.size > self.limit {
                return Err(PutBlobError::TooLarge { limit: self.limit });
            }
            self.digest.update(&chunk);
            gathered += chunk.len();
            part.push(chunk);
        }
        Ok(part)
    }
}

/// A multipart upload that is aborted on drop unless it was completed.
struct PendingUpload(Option<Box<dyn MultipartUpload>>);

impl PendingUpload {
    fn put_part(&mut self, part: PutPayload) -> Result<object_store::UploadPart, PortError> {
        let upload = self.0.as_mut();
        let upload =
            upload.ok_or_else(|| PortError::Internal("the upload is completed".to_owned()))?;
        Ok(upload.put_part(part))
    }

    async fn complete(&mut self) -> Result<(), PortError> {
        if let Some(upload) = self.0.as_mut() {
            upload.complete().await.map_err(reading::error)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for PendingUpload {
    fn drop(&mut self) {
        // A rule of the bucket removes the parts of a killed process (docs/STORAGE.md).
        if let Some(mut upload) = self.0.take()
            // Without a runtime there is nothing that could send the request.
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                if let Err(error) = upload.abort().await {
                    tracing::debug!(%error, "could not abort a multipart upload");
                }
            });
        }
    }
}
