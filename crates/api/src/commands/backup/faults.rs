//! Faults of the storage while a backup is made or brought back: whichever call fails, nothing is taken for whole.

use std::{fs::File, io::Write, path::Path, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use labdata_memory::{FaultMoment, FaultyBlobStore};
use labdata_ports::files::blob::BlobStore;
use tempfile::{TempDir, tempdir};
use uuid::Uuid;

use super::{
    manifest::Manifest,
    objects::copy,
    restore::{check_copies, look_up, put_all_back},
};
use crate::compose::LocalBlobStore;

type Ids = Vec<(OrganizationId, ObjectKey)>;

fn faulty(blobs: &Arc<dyn BlobStore>, fails_at: u32) -> FaultyBlobStore {
    FaultyBlobStore::new(blobs, fails_at, FaultMoment::Before)
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
            let faulty = faulty(&blobs, fails_at);
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
        let faulty = faulty(&target, fails_at);
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
        let faulty = faulty(&blobs, fails_at);
        assert!(look_up(&faulty, backup.path()).await.is_err());
    }
    let none = look_up(&*blobs, backup.path()).await.unwrap();
    assert!(none.is_empty(), "{none:?}");
}

#[tokio::test]
async fn a_damaged_copy_is_refused_and_spoils_no_storage() {
    let (_storage, blobs, ids) = filled().await;
    let backup = tempdir().unwrap();
    let copied = copy(&*blobs, needed(&ids), backup.path(), true).await;
    copied.unwrap();
    check_copies(backup.path()).await.unwrap();
    let target = tempdir().unwrap();
    let target = storage(target.path()).await;
    let (organization, object) = ids[1];
    let other = stream::iter([Ok(Bytes::from_static(b"plate X"))]).boxed();
    let spoiled = target.put_new(organization, object, other, u64::MAX).await;
    spoiled.unwrap();
    put_all_back(&*target, backup.path()).await.unwrap();
    let (restored, whole) = (
        target.checksum(organization, object).await.unwrap(),
        blobs.checksum(organization, object).await.unwrap(),
    );
    assert_eq!(restored.crc32c, whole.crc32c);
    // The storage of the backup is one of the same kind.
    let objects = storage(&backup.path().join("objects")).await;
    objects.delete(organization, object).await.unwrap();
    let other = stream::iter([Ok(Bytes::from_static(b"plate Y"))]).boxed();
    let damaged = objects.put_new(organization, object, other, u64::MAX).await;
    damaged.unwrap();
    let refused = check_copies(backup.path()).await.unwrap_err().to_string();
    assert!(refused.contains("of the backup is damaged"), "{refused}");
}
