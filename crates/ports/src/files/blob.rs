//! The bytes of files, and signed URLs to them.

use std::{
    fmt,
    io::{Read, Seek},
    ops::Range,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use labdata_domain::{
    files::{ContentType, FilePath, ObjectKey, StoredBytes},
    ids::OrganizationId,
    storage::DiskSpace,
};
use labdata_redacted::redacted_url;
use time::OffsetDateTime;

use crate::PortError;

/// A chunk after the other of a body. The error is the text of what broke off.
pub type ByteStream = BoxStream<'static, Result<Bytes, BodyBroken>>;

/// The body ended before its end: the sender left, or the storage stopped answering.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body broke off: {0}")]
pub struct BodyBroken(pub String);

/// Why no object was created. Nothing of it is visible then.
#[derive(Debug, thiserror::Error)]
pub enum PutBlobError {
    /// There is an object of that key; it was left as it was.
    #[error("the object exists")]
    Exists,
    /// The body is longer than the limit.
    #[error("the body is longer than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The body broke off.
    #[error(transparent)]
    Body(#[from] BodyBroken),
    /// The port failed; [`PortError::DiskFull`] when the storage is full.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An object that is being read.
pub struct BlobBody {
    /// Size of the whole object in bytes.
    pub size: u64,
    /// The bytes asked for. Breaks off with an error rather than ending early.
    pub bytes: ByteStream,
}

/// Bytes of an object, read from any position. Reading blocks the thread.
pub trait BlobReader: Read + Seek + Send {}

impl<R: Read + Seek + Send> BlobReader for R {}

/// Storage of bytes. An object belongs to one organization; the same key in another is
/// another object.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Creates an object of the stream's bytes and returns their number and CRC-32C.
    ///
    /// - MUST be durable before it returns: neither a kill nor a loss of power takes it back.
    /// - MUST NOT show anything of the object before it is whole: of racing calls for one key
    ///   exactly one succeeds and the rest fail with [`PutBlobError::Exists`]; a body that breaks off
    ///   or runs over `limit` leaves no object, a future that is dropped none or a whole one.
    /// - MUST hold a bounded part of the body in memory, and stop reading behind the limit.
    ///
    /// # Errors
    /// See [`PutBlobError`].
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError>;

    /// Reads an object, or a range of it. A range is cut at the object's end; one that starts
    /// behind it is empty.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError>;

    /// Opens an object for reads from any position.
    ///
    /// - MUST read the whole object even if it is deleted in the meantime.
    /// - MUST hold a bounded part of it in memory.
    ///
    /// # Errors
    /// [`PortError::NotFound`]; [`PortError::DiskFull`] if a remote store has no room for a copy.
    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError>;

    /// The size of an object.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn size(&self, organization: OrganizationId, object: ObjectKey)
    -> Result<u64, PortError>;

    /// The size and the CRC-32C of an object: as the storage recorded them, or else by reading it
    /// through once.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError>;

    /// Removes an object; one that does not exist is as good as removed.
    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError>;

    /// Removes what unfinished calls of [`BlobStore::put_new`] left behind when their process died,
    /// at the least of those that began before that time; returns how many. A store that stores
    /// nothing of the kind has nothing to do.
    async fn sweep_unfinished(&self, begun_before: OffsetDateTime) -> Result<u64, PortError> {
        // Named without an underscore for the mock, which uses it.
        let _ = begun_before;
        Ok(0)
    }

    /// Lists every object of every organization, in any order. One created or removed during the listing
    /// may be among them. What was not made by this platform is left out.
    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>>;

    /// Measures the disk that the objects are on. `None` if the storage is as large as needed.
    async fn disk_space(&self) -> Result<Option<DiskSpace>, PortError> {
        Ok(None)
    }

    /// Makes sure that the storage responds and takes bytes.
    ///
    /// # Errors
    /// [`PortError::Unavailable`], saying what does not work.
    async fn probe(&self) -> Result<(), PortError>;
}

/// Permission of a signed upload URL: to create one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadGrant {
    /// The object.
    pub object: ObjectKey,
    /// The type that the upload must state.
    pub content_type: ContentType,
    /// The most bytes.
    pub limit: u64,
    /// When it ends.
    pub expires_at: OffsetDateTime,
}

/// Permission of a signed download URL: to read one object, as a file of that name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadGrant {
    /// The object.
    pub object: ObjectKey,
    /// The name under which it is saved: the path's last part.
    pub path: FilePath,
    /// The type with which it is served.
    pub content_type: ContentType,
    /// When it ends.
    pub expires_at: OffsetDateTime,
}

/// A URL for an upload, with the headers that the upload must carry exactly.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedUpload {
    /// The URL.
    pub url: String,
    /// Header names, lower-case, and values.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for SignedUpload {
    /// Without the signature, which is a permission.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedUpload")
            .field("url", &redacted_url(&self.url))
            .field("headers", &self.headers)
            .finish()
    }
}

/// A request to a signed URL of the platform's own, as it came in.
#[derive(Clone, Copy)]
pub struct SignedRequest<'a> {
    /// The method, upper-case.
    pub method: &'a str,
    /// The path, as it was sent.
    pub path: &'a str,
    /// Query string as sent, without the `?`.
    pub query: &'a str,
    /// The headers: names lower-case.
    pub headers: &'a [(String, String)],
}

impl fmt::Debug for SignedRequest<'_> {
    /// Without the query, which holds the signature, and the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Permission of a request with a valid signature, and its organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Create an object.
    Upload(OrganizationId, UploadGrant),
    /// Read an object.
    Download(OrganizationId, DownloadGrant),
}

/// Why a signed request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The signature is missing, or not that of this request.
    #[error("the signature does not match the request")]
    Mismatch,
    /// It was valid once.
    #[error("the URL has expired")]
    Expired,
    /// A header that was signed is missing from the request; the text names it.
    #[error("the signed header {0} is missing")]
    MissingHeader(String),
}

/// Makes URLs that carry their own permission.
#[async_trait]
pub trait UrlSigner: Send + Sync {
    /// A URL that creates the object by PUT. It MUST create only, and MUST NOT accept more bytes
    /// than the limit or another type.
    async fn sign_upload(
        &self,
        organization: OrganizationId,
        grant: &UploadGrant,
    ) -> Result<SignedUpload, PortError>;

    /// A URL that reads the object by GET and HEAD.
    async fn sign_download(
        &self,
        organization: OrganizationId,
        grant: &DownloadGrant,
    ) -> Result<String, PortError>;

    /// Verifies a request to one of the platform's URLs. MUST compare in constant time, and
    /// MUST NOT reveal whether a URL that it never signed would have expired.
    ///
    /// # Errors
    /// See [`SignatureError`].
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        now: OffsetDateTime,
    ) -> Result<Granted, SignatureError>;
}
