//! The local disk keeps what [`labdata_ports::files::blob::BlobStore`] promises.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use labdata_object_store::LocalBlobStore;
use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::files::blob::BlobStore;
use tempfile::TempDir;

struct LocalDisk {
    blobs: Arc<LocalBlobStore>,
    _directory: TempDir,
}

#[async_trait]
impl Harness for LocalDisk {
    async fn fresh() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let blobs = LocalBlobStore::open(directory.path()).await.unwrap();
        Self {
            blobs: Arc::new(blobs),
            _directory: directory,
        }
    }
}

impl Subject<dyn BlobStore> for LocalDisk {
    fn subject(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }
}

labdata_port_contracts::blob!(LocalDisk);
