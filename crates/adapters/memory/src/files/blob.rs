//! Bytes of files in memory.

use std::{io::Cursor, ops::Range};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use labdata_domain::{
    files::{Crc32c, ObjectKey, StoredBytes},
    ids::OrganizationId,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BlobReader, BlobStore, ByteStream, PutBlobError},
};

use crate::memory::fake;

fake!(
    /// Bytes of files in memory.
    pub struct InMemoryBlobStore;
);

impl InMemoryBlobStore {
    fn bytes(&self, organization: OrganizationId, object: ObjectKey) -> Result<Bytes, PortError> {
        let state = self.memory.lock();
        state
            .objects
            .get(&(organization, object))
            .cloned()
            .ok_or(PortError::NotFound(Resource::Object))
    }
}

#[async_trait]
impl BlobStore for InMemoryBlobStore {
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        mut body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError> {
        let mut whole: Vec<u8> = Vec::new();
        while let Some(chunk) = body.next().await {
            whole.extend_from_slice(&chunk?);
            if length(&whole) > limit {
                return Err(PutBlobError::TooLarge { limit });
            }
        }
        let stored = StoredBytes {
            size: length(&whole),
            crc32c: crc32c(&whole),
        };
        let mut state = self.memory.lock();
        if state.objects.contains_key(&(organization, object)) {
            return Err(PutBlobError::Exists);
        }
        state.objects.insert((organization, object), whole.into());
        Ok(stored)
    }

    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError> {
        let whole = self.bytes(organization, object)?;
        let size = length(&whole);
        let wanted = range.unwrap_or(0..size);
        let place = |at: u64| usize::try_from(at.min(size)).unwrap_or(usize::MAX);
        let (start, end) = (place(wanted.start), place(wanted.end));
        let part = whole.slice(start..end.max(start));
        let chunks = if part.is_empty() {
            Vec::new()
        } else {
            vec![Ok(part)]
        };
        Ok(BlobBody {
            size,
            bytes: stream::iter(chunks).boxed(),
        })
    }

    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError> {
        Ok(Box::new(Cursor::new(self.bytes(organization, object)?)))
    }

    async fn size(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<u64, PortError> {
        Ok(length(&self.bytes(organization, object)?))
    }

    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError> {
        let whole = self.bytes(organization, object)?;
        Ok(StoredBytes {
            size: length(&whole),
            crc32c: crc32c(&whole),
        })
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError> {
        self.memory.lock().objects.remove(&(organization, object));
        Ok(())
    }

    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>> {
        let objects: Vec<_> = self.memory.lock().objects.keys().copied().collect();
        stream::iter(objects.into_iter().map(Ok)).boxed()
    }

    async fn probe(&self) -> Result<(), PortError> {
        Ok(())
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// The CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> Crc32c {
    let mut checksum = u32::MAX;
    for byte in bytes {
        checksum ^= u32::from(*byte);
        for _ in 0..8 {
            let polynomial = if checksum & 1 == 1 { 0x82f6_3b78 } else { 0 };
            checksum = (checksum >> 1) ^ polynomial;
        }
    }
    Crc32c::new(!checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), Crc32c::new(0xe306_9283));
        assert_eq!(crc32c(b""), Crc32c::new(0));
    }
}
