//! Runs the port's contract suite over the adapter.
#![expect(clippy::unwrap_used, reason = "a test that fails ends there")]

use std::{fs, sync::Arc};

use example_directory_blob_store::DirectoryBlobStore;
use futures::{StreamExt, stream};
use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::files::blob::BlobStore;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// A store in a temporary directory, which is removed on drop.
struct Fresh(TempDir);

#[async_trait]
impl Harness for Fresh {
    async fn fresh() -> Self {
        Self(TempDir::new().unwrap())
    }
}

impl Subject<dyn BlobStore> for Fresh {
    fn subject(&self) -> Arc<dyn BlobStore> {
        Arc::new(DirectoryBlobStore::open(self.0.path()).unwrap())
    }
}

labdata_port_contracts::blob!(Fresh);

/// A process that dies in an upload leaves a file that the sweep removes. Not a clause of the suite, as it
/// is about how this adapter stores.
#[tokio::test]
async fn unfinished_files_of_a_dead_process_are_swept() {
    let fresh = Fresh::fresh().await;
    let blobs = fresh.subject();
    let left = fresh.0.path().join("incoming").join("left.1.0");
    fs::write(&left, "half").unwrap();
    let written = OffsetDateTime::from(fs::metadata(&left).unwrap().modified().unwrap());
    assert_eq!(blobs.sweep_unfinished(written).await.unwrap(), 0);
    assert!(left.exists());
    let later = written + Duration::SECOND;
    assert_eq!(blobs.sweep_unfinished(later).await.unwrap(), 1);
    assert!(!left.exists());
}

/// Only bodies that are stored take a name; nothing is left of others.
#[tokio::test]
async fn a_refused_body_leaves_no_file() {
    let fresh = Fresh::fresh().await;
    let (lab, object) = (
        OrganizationId::new(Uuid::from_u128(1)),
        ObjectKey::new(Uuid::from_u128(2)),
    );
    let body = stream::iter([Ok("longer than three".into())]).boxed();
    fresh
        .subject()
        .put_new(lab, object, body, 3)
        .await
        .unwrap_err();
    let left = fs::read_dir(fresh.0.path().join("incoming")).unwrap();
    assert_eq!(left.count(), 0);
}
