//! Faults of the storage while a backup is made or brought back: whichever call fails, nothing is taken for whole.

use std::{
    fs::File,
    io::Write,
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use labdata_domain::{
    files::{ObjectKey, StoredBytes},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BlobReader, BlobStore, ByteStream, PutBlobError},
};
use tempfile::{TempDir, tempdir};
use uuid::Uuid;

use super::{
    manifest::Manifest,
    objects::copy,
    restore::{look_up, put_all_back},
};
use crate::compose::LocalBlobStore;

type Ids = Vec<(OrganizationId, ObjectKey)>;

/// A storage of which one call fails.
struct FaultyBlobs {
    inner: Arc<dyn BlobStore>,
    calls: AtomicU32,
    fails_at: u32,
}

impl FaultyBlobs {
    fn new(inner: &Arc<dyn BlobStore>, fails_at: u32) -> Self {
        Self {
            inner: Arc::clone(inner),
            calls: AtomicU32::new(0),
            fails_at,
        }
    }

    fn has_failed(&self) -> bool {
        self.calls.load(Ordering::Relaxed) >= self.fails_at
    }

    async fn call<T, E: From<PortError>>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if self.calls.fetch_add(1, Ordering::Relaxed) + 1 == self.fails_at {
            return Err(PortError::Unavailable("injected".to_owned()).into());
        }
        call.await
    }
}

#[async_trait]
impl BlobStore for FaultyBlobs {
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError> {
        let put = self.inner.put_new(organization, object, body, limit);
        self.call(put).await
    }

    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError> {
        let read = self.inner.read(organization, object, range);
        self.call(read).await
    }

    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError> {
        self.call(self.inner.open(organization, object)).await
    }

    async fn size(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<u64, PortError> {
        self.call(self.inner.size(organization, object)).await
    }

    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError> {
        self.call(self.inner.checksum(organization, object)).await
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError> {
        self.call(self.inner.delete(organization, object)).await
    }

    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>> {
        self.inner.objects()
    }

    async fn probe(&self) -> Result<(), PortError> {
        self.call(self.inner.probe()).await
    }
}

async fn storage(directory: &Path) -> Arc<dyn BlobStore> {
    Arc::new(LocalBlobStore::open(directory).await.unwrap())
}

/// A storage of three objects.
async fn filled() -> (TempDir, Arc<dyn BlobStore>, Ids) {
    let directory = tempdir().unwrap();
    let blobs = storage(directory.path()).await;
    let mut ids = Ids::new();
    for number in 1..=3 {
        let (organization, object) = (
            OrganizationId::new(Uuid::from_u128(7)),
            ObjectKey::new(Uuid::from_u128(number)),
        );
        let bytes = stream::iter([Ok(Bytes::from(format!("plate {number}")))]).boxed();
        let put = blobs.put_new(organization, object, bytes, u64::MAX).await;
        put.unwrap();
        ids.push((organization, object));
    }
    (directory, blobs, ids)
}

/// The list of needed objects.
fn needed(ids: &[(OrganizationId, ObjectKey)]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    for (organization, object) in ids {
        let (size, crc32c) = (None::<u64>, None::<String>);
        let line = (organization.to_string(), object.to_string(), size, crc32c);
        serde_json::to_writer(&mut file, &line).unwrap();
        file.write_all(b"\n").unwrap();
    }
    file
}

#[tokio::test]
async fn a_copy_of_which_any_call_fails_is_no_backup() {
    let (_storage, blobs, ids) = filled().await;
    for are_included in [true, false] {
        for fails_at in 1.. {
            let directory = tempdir().unwrap();
            let faulty = FaultyBlobs::new(&blobs, fails_at);
            let copied = copy(&faulty, needed(&ids), directory.path(), are_included).await;
            if !faulty.has_failed() {
                assert_eq!(copied.unwrap().count, 3);
                break;
            }
            assert!(copied.is_err(), "call {fails_at}");
            assert!(Manifest::read(directory.path()).is_err());
        }
    }
}

#[tokio::test]
async fn a_restore_of_which_any_call_fails_is_refused_and_can_be_repeated() {
    let (_storage, blobs, ids) = filled().await;
    let backup = tempdir().unwrap();
    let copied = copy(&*blobs, needed(&ids), backup.path(), true).await;
    assert_eq!(copied.unwrap().count, 3);
    for fails_at in 1.. {
        let directory = tempdir().unwrap();
        let target = storage(directory.path()).await;
        let faulty = FaultyBlobs::new(&target, fails_at);
        let restored = put_all_back(&faulty, backup.path()).await;
        if !faulty.has_failed() {
            restored.unwrap();
            break;
        }
        // The database comes after the objects, and not after this.
        assert!(restored.is_err(), "call {fails_at}");
        put_all_back(&*target, backup.path()).await.unwrap();
        for (organization, object) in &ids {
            assert_eq!(target.size(*organization, *object).await.unwrap(), 7);
        }
    }
}

#[tokio::test]
async fn objects_that_cannot_be_looked_up_are_not_taken_for_missing() {
    let (_storage, blobs, ids) = filled().await;
    let backup = tempdir().unwrap();
    let copied = copy(&*blobs, needed(&ids), backup.path(), false).await;
    assert_eq!(copied.unwrap().count, 3);
    for fails_at in 1..=3 {
        let faulty = FaultyBlobs::new(&blobs, fails_at);
        assert!(look_up(&faulty, backup.path()).await.is_err());
    }
    let none = look_up(&*blobs, backup.path()).await.unwrap();
    assert!(none.is_empty(), "{none:?}");
}
