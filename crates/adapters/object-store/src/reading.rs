//! Reading and removing objects, for all backends.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use futures::{
    StreamExt, TryStreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use labdata_domain::{
    files::{Crc32c, ObjectKey, StoredBytes},
    ids::OrganizationId,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BodyBroken, ByteStream},
};
use object_store::{
    GetOptions, GetRange, GetResultPayload, ObjectStore, ObjectStoreExt, path::Path,
};

use crate::object_path::ids;

/// Bytes of a local file that are read at once.
const CHUNK_BYTES: u64 = 256 * 1024;

/// Reads an object or a range of it, which is cut at the object's end.
pub(crate) async fn read(
    store: &dyn ObjectStore,
    path: &Path,
    mut range: Option<Range<u64>>,
) -> Result<BlobBody, PortError> {
    if let Some(range) = &mut range {
        // Clouds refuse a range that begins beyond the end (416), and a header cannot express an empty one.
        let size = size(store, path).await?;
        range.end = range.end.min(size);
        if range.is_empty() {
            return Ok(BlobBody {
                size,
                bytes: stream::empty().boxed(),
            });
        }
    }
    let options = GetOptions {
        range: range.map(GetRange::Bounded),
        ..GetOptions::default()
    };
    let found = store.get_opts(path, options).await.map_err(error)?;
    let size = found.meta.size;
    let bytes = match found.payload {
        GetResultPayload::File(file, _) => file_stream(file, found.range),
        GetResultPayload::Stream(bytes) => {
            bytes.map_err(|error| BodyBroken(error.to_string())).boxed()
        }
    };
    Ok(BlobBody { size, bytes })
}

/// Lists all objects below a prefix.
pub(crate) fn objects<'s>(
    store: &'s dyn ObjectStore,
    prefix: &Path,
) -> BoxStream<'s, Result<(OrganizationId, ObjectKey), PortError>> {
    let prefix = prefix.clone();
    store
        .list(Some(&prefix))
        .map_err(error)
        // A bucket may also hold objects of others, which have other names.
        .try_filter_map(move |found| ready(Ok(ids(&found.location, &prefix))))
        .boxed()
}

/// Returns the size of an object in bytes.
pub(crate) async fn size(store: &dyn ObjectStore, path: &Path) -> Result<u64, PortError> {
    Ok(store.head(path).await.map_err(error)?.size)
}

/// Reads an object to compute its size and CRC-32C.
pub(crate) async fn checksum(
    store: &dyn ObjectStore,
    path: &Path,
) -> Result<StoredBytes, PortError> {
    let BlobBody { size, mut bytes } = read(store, path, None).await?;
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(|error| PortError::Unavailable(error.to_string()))?;
        digest.update(&chunk);
    }
    let crc32c = crc32c(&digest).map_err(|error| PortError::Internal(error.to_string()))?;
    Ok(StoredBytes { size, crc32c })
}

/// Converts the result of a digest.
pub(crate) fn crc32c(digest: &Digest) -> io::Result<Crc32c> {
    u32::try_from(digest.finalize())
        .map(Crc32c::new)
        .map_err(io::Error::other)
}

/// Removes an object. Succeeds if it does not exist.
pub(crate) async fn delete(store: &dyn ObjectStore, path: &Path) -> Result<(), PortError> {
    match store.delete(path).await {
        // S3 reports success for a missing object as well, and deletions are repeated after a crash.
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(failed) => Err(error(failed)),
    }
}

/// Converts an error of the storage.
pub(crate) fn error(error: object_store::Error) -> PortError {
    match error {
        object_store::Error::NotFound { .. } => PortError::NotFound(Resource::Object),
        error => PortError::Unavailable(format!("the file storage does not respond: {error}")),
    }
}

fn file_stream(file: File, range: Range<u64>) -> ByteStream {
    stream::try_unfold((file, range), |(mut file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let end = range.end.min(range.start + CHUNK_BYTES);
        // Reads of a file block, and have no asynchronous form on most systems.
        let read = move || -> io::Result<(Bytes, File)> {
            let length = usize::try_from(end - range.start).map_err(io::Error::other)?;
            let mut buffer = vec![0; length];
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(&mut buffer)?;
            Ok((Bytes::from(buffer), file))
        };
        let outcome = tokio::task::spawn_blocking(read)
            .await
            .map_err(io::Error::other);
        let (bytes, file) = outcome
            .and_then(|read| read)
            .map_err(|error| BodyBroken(error.to_string()))?;
        Ok(Some((bytes, (file, end..range.end))))
    })
    .boxed()
}
