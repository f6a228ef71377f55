//! Reading objects, from whatever backend.

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
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BodyBroken, ByteStream},
};
use object_store::{
    GetOptions, GetRange, GetResultPayload, ObjectStore, ObjectStoreExt, path::Path,
};

use crate::place::ids;

/// How many bytes of a local file are read at once.
const CHUNK_BYTES: u64 = 256 * 1024;

/// Reads an object or a range of it, which is cut at the object's end.
pub(crate) async fn read(
    store: &dyn ObjectStore,
    place: &Path,
    mut range: Option<Range<u64>>,
) -> Result<BlobBody, PortError> {
    if let Some(range) = &mut range {
        let size = size(store, place).await?;
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
    let found = store.get_opts(place, options).await.map_err(error)?;
    let size = found.meta.size;
    let bytes = match found.payload {
        GetResultPayload::File(file, _) => file_stream(file, found.range),
        GetResultPayload::Stream(bytes) => {
            bytes.map_err(|error| BodyBroken(error.to_string())).boxed()
        }
    };
    Ok(BlobBody { size, bytes })
}

/// Every object below a prefix.
pub(crate) fn objects<'s>(
    store: &'s dyn ObjectStore,
    prefix: &Path,
) -> BoxStream<'s, Result<(OrganizationId, ObjectKey), PortError>> {
    let prefix = prefix.clone();
    store
        .list(Some(&prefix))
        .map_err(error)
        .try_filter_map(move |found| ready(Ok(ids(&found.location, &prefix))))
        .boxed()
}

/// The size of an object.
pub(crate) async fn size(store: &dyn ObjectStore, place: &Path) -> Result<u64, PortError> {
    Ok(store.head(place).await.map_err(error)?.size)
}

/// The size and the CRC-32C of an object, by reading it through.
pub(crate) async fn checksum(
    store: &dyn ObjectStore,
    place: &Path,
) -> Result<StoredBytes, PortError> {
    let BlobBody { size, mut bytes } = read(store, place, None).await?;
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    while let Some(piece) = bytes.next().await {
        let piece = piece.map_err(|error| PortError::Unavailable(error.to_string()))?;
        digest.update(&piece);
    }
    let crc32c = crc32c(&digest).map_err(|error| PortError::Internal(error.to_string()))?;
    Ok(StoredBytes { size, crc32c })
}

/// The checksum of what a digest has seen.
pub(crate) fn crc32c(digest: &Digest) -> io::Result<Crc32c> {
    u32::try_from(digest.finalize())
        .map(Crc32c::new)
        .map_err(io::Error::other)
}

/// Removes an object; one that does not exist is as good as removed.
pub(crate) async fn delete(store: &dyn ObjectStore, place: &Path) -> Result<(), PortError> {
    match store.delete(place).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(failed) => Err(error(failed)),
    }
}

/// What a caller can do about an error of the storage.
pub(crate) fn error(error: object_store::Error) -> PortError {
    match error {
        object_store::Error::NotFound { .. } => PortError::NotFound("object"),
        error => PortError::Unavailable(format!("the file storage does not answer: {error}")),
    }
}

fn file_stream(file: File, range: Range<u64>) -> ByteStream {
    stream::try_unfold((file, range), |(mut file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let end = range.end.min(range.start + CHUNK_BYTES);
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
