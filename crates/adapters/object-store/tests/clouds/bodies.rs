//! Bodies of uploads, and what is done with them.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use labdata_domain::{
    files::{ContentType, FilePath, MAX_FILE_BYTES, ObjectKey, StoredBytes},
    ids::OrganizationId,
};
use labdata_ports::files::blob::{
    BlobStore, BodyBroken, ByteStream, DownloadGrant, PutBlobError, UploadGrant,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

pub(crate) const LAB: OrganizationId = OrganizationId::new(Uuid::from_u128(0xa1));

pub(crate) fn object(number: u128) -> ObjectKey {
    ObjectKey::new(Uuid::from_u128(number))
}

/// Twelve megabytes and a bit: more than two parts.
pub(crate) fn long() -> Vec<u8> {
    (0..3_086_419_u32)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect()
}

pub(crate) fn body(bytes: &[u8]) -> ByteStream {
    let parts: Vec<_> = bytes
        .chunks(100_000)
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    stream::iter(parts).boxed()
}

/// The body, and then no end.
pub(crate) fn torn(bytes: &[u8]) -> ByteStream {
    let cut = stream::once(async { Err(BodyBroken("the connection was cut".to_owned())) });
    body(bytes).chain(cut).boxed()
}

pub(crate) async fn put(
    blobs: &dyn BlobStore,
    object: ObjectKey,
    body: ByteStream,
) -> Result<StoredBytes, PutBlobError> {
    blobs.put_new(LAB, object, body, MAX_FILE_BYTES).await
}

pub(crate) async fn read(blobs: &dyn BlobStore, object: ObjectKey) -> Vec<u8> {
    let body = blobs.read(LAB, object, None).await.unwrap();
    body.bytes
        .try_collect::<Vec<Bytes>>()
        .await
        .unwrap()
        .concat()
}

/// Clauses on bodies of several parts, for every cloud.
pub(crate) async fn long_bodies_are_stored_whole_once_or_not_at_all(blobs: Arc<dyn BlobStore>) {
    let bytes = long();
    let length = u64::try_from(bytes.len()).unwrap();
    let stored = put(&*blobs, object(1), body(&bytes)).await.unwrap();
    assert_eq!(stored.size, length);
    assert_eq!(blobs.checksum(LAB, object(1)).await.unwrap(), stored);
    assert!(read(&*blobs, object(1)).await == bytes);
    let again = put(&*blobs, object(1), body(&bytes)).await;
    assert!(matches!(again, Err(PutBlobError::Exists)), "{again:?}");

    let broken = put(&*blobs, object(2), torn(&bytes)).await;
    assert!(matches!(broken, Err(PutBlobError::Body(_))), "{broken:?}");
    let over = blobs
        .put_new(LAB, object(2), body(&bytes), length - 1)
        .await;
    assert!(
        matches!(over, Err(PutBlobError::TooLarge { .. })),
        "{over:?}"
    );
    assert!(blobs.size(LAB, object(2)).await.is_err());

    let racing = (0..8).map(|_| put(&*blobs, object(2), body(&bytes)));
    let results = join_all(racing).await;
    let created = results.iter().filter(|result| result.is_ok()).count();
    let refused = results
        .iter()
        .filter(|result| matches!(result, Err(PutBlobError::Exists)))
        .count();
    assert_eq!((created, refused), (1, 7), "{results:?}");
    assert!(read(&*blobs, object(2)).await == bytes);

    // All that was in parts is gone, or is swept.
    let later = OffsetDateTime::from_unix_timestamp(99_999_999_999).unwrap();
    assert_eq!(blobs.sweep_unfinished(later).await.unwrap(), 0);
}

/// An upload of that object, good for a quarter of an hour.
pub(crate) fn upload(object: ObjectKey, now: OffsetDateTime) -> UploadGrant {
    UploadGrant {
        object,
        content_type: ContentType::substitute(Some("text/csv")),
        limit: MAX_FILE_BYTES,
        expires_at: now + Duration::minutes(15),
    }
}

/// A download of that object as `Süd "1".csv`.
pub(crate) fn download(object: ObjectKey, now: OffsetDateTime) -> DownloadGrant {
    DownloadGrant {
        object,
        path: FilePath::parse("runs/Süd \"1\".csv").unwrap(),
        content_type: ContentType::substitute(Some("text/csv")),
        expires_at: now + Duration::minutes(15),
    }
}
