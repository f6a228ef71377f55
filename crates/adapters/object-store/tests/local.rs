//! Behavior of the local disk beyond the port's contract.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use labdata_object_store::LocalBlobStore;
use labdata_ports::files::blob::{BlobStore, BodyBroken, ByteStream};
use time::OffsetDateTime;
use uuid::Uuid;

const LAB: OrganizationId = OrganizationId::new(Uuid::from_u128(1));
const OBJECT: ObjectKey = ObjectKey::new(Uuid::from_u128(0x12ab));

fn body(bytes: &'static [u8]) -> ByteStream {
    stream::once(async move { Ok(Bytes::from_static(bytes)) }).boxed()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[tokio::test]
async fn an_object_lies_where_its_ids_say_and_nothing_else_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    blobs.put_new(LAB, OBJECT, body(b"bytes"), 5).await.unwrap();
    let expected = directory.path().join(format!("{LAB}/ab/{OBJECT}"));
    assert_eq!(files_below(directory.path()), [expected]);
}

#[tokio::test]
async fn a_torn_body_and_one_over_the_limit_leave_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    let torn = body(b"some").chain(stream::once(async { Err(BodyBroken("cut".to_owned())) }));
    assert!(blobs.put_new(LAB, OBJECT, torn.boxed(), 100).await.is_err());
    assert!(blobs.put_new(LAB, OBJECT, body(b"12345"), 4).await.is_err());
    assert_eq!(files_below(directory.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn objects_are_there_after_the_store_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    blobs.put_new(LAB, OBJECT, body(b"bytes"), 5).await.unwrap();
    drop(blobs);
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    assert_eq!(blobs.size(LAB, OBJECT).await.unwrap(), 5);
}

#[tokio::test]
async fn two_stores_on_one_directory_create_one_object() {
    let directory = tempfile::tempdir().unwrap();
    let first = LocalBlobStore::open(directory.path()).await.unwrap();
    let second = LocalBlobStore::open(directory.path()).await.unwrap();
    let (one, other) = tokio::join!(
        first.put_new(LAB, OBJECT, body(b"one"), 5),
        second.put_new(LAB, OBJECT, body(b"two"), 5),
    );
    assert_eq!(u8::from(one.is_ok()) + u8::from(other.is_ok()), 1);
}

#[tokio::test]
async fn the_sweeper_removes_leftovers_and_leaves_objects_and_what_is_being_written() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    blobs.put_new(LAB, OBJECT, body(b"bytes"), 5).await.unwrap();
    // A file that its writer holds locked, and a young file without a writer.
    let incoming = directory.path().join("incoming");
    let begun = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let mut writers = Vec::new();
    for (name, after, held) in [
        ("old", 0, true),
        ("young", 1_000, true),
        ("left", 1_000, false),
    ] {
        let file = fs::File::create(incoming.join(name)).unwrap();
        file.set_modified(begun + Duration::from_secs(after))
            .unwrap();
        if held {
            file.lock().unwrap();
            writers.push(file);
        }
    }
    let before = OffsetDateTime::from_unix_timestamp(1_500).unwrap();
    assert_eq!(blobs.sweep_unfinished(before).await.unwrap(), 2);
    assert_eq!(files_below(&incoming), [incoming.join("young")]);
    assert_eq!(blobs.size(LAB, OBJECT).await.unwrap(), 5);
}

#[tokio::test]
async fn the_sweeper_of_another_process_leaves_an_upload_in_progress_alone() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    let sweeping = LocalBlobStore::open(directory.path()).await.unwrap();
    let swept = stream::once(async move {
        let all = sweeping.sweep_unfinished(OffsetDateTime::UNIX_EPOCH).await;
        assert_eq!(all.unwrap(), 0);
        Ok(Bytes::from_static(b"more"))
    });
    let chunk = || stream::once(async { Ok(Bytes::from(vec![b'x'; 1 << 20])) });
    let body = chunk().chain(chunk()).chain(swept).boxed();
    let stored = blobs.put_new(LAB, OBJECT, body, u64::MAX).await.unwrap();
    assert_eq!(stored.size, (2 << 20) + 4);
}

#[tokio::test]
async fn leftovers_of_a_process_of_the_same_id_hinder_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let incoming = directory.path().join("incoming");
    fs::create_dir(&incoming).unwrap();
    let process = std::process::id();
    for count in 0..20 {
        for name in [OBJECT.to_string(), "probe".to_owned()] {
            fs::write(incoming.join(format!("{name}.{process}.{count}")), b"torn").unwrap();
            fs::write(incoming.join(format!("{name}.{process}.{count}.link")), b"").unwrap();
        }
    }
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    blobs.put_new(LAB, OBJECT, body(b"bytes"), 5).await.unwrap();
    assert_eq!(blobs.size(LAB, OBJECT).await.unwrap(), 5);
    assert_eq!(fs::read_dir(&incoming).unwrap().count(), 80);
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = LocalBlobStore::open(&file)
        .await
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot use file://"), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[tokio::test]
async fn the_probe_fails_once_the_directory_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
    fs::remove_dir_all(directory.path()).unwrap();
    assert!(blobs.probe().await.is_err());
}

/// After a crash between the link and the sync of its directory, the disk has the name or lacks it.
#[tokio::test]
async fn a_crash_before_the_name_is_durable_leaves_the_whole_object_or_room_for_it() {
    for has_name in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
        let left = directory.path().join(format!("incoming/{OBJECT}.1.1"));
        // Its bytes were durable before.
        fs::write(&left, b"bytes").unwrap();
        let object = directory.path().join(format!("{LAB}/ab/{OBJECT}"));
        if has_name {
            fs::create_dir_all(object.parent().unwrap()).unwrap();
            fs::hard_link(&left, &object).unwrap();
        }
        drop(blobs);

        let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
        let again = blobs.put_new(LAB, OBJECT, body(b"bytes"), 5).await;
        assert_eq!(again.is_err(), has_name, "{again:?}");
        assert_eq!(blobs.checksum(LAB, OBJECT).await.unwrap().size, 5);
        // The writer's lock ended with its process.
        let swept = blobs.sweep_unfinished(OffsetDateTime::UNIX_EPOCH).await;
        assert_eq!(swept.unwrap(), 1);
        assert_eq!(files_below(directory.path()), [object]);
    }
}
