//! Objects as local files.

use std::{
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{BoxStream, Fuse},
};
use labdata_domain::{
    files::{ObjectKey, StoredBytes},
    ids::OrganizationId,
    refusal::Resource,
    storage::DiskSpace,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BlobReader, BlobStore, ByteStream, PutBlobError},
};
use object_store::{local::LocalFileSystem, path::Path as ObjectPath};
use time::OffsetDateTime;

use crate::{
    OpenError,
    incoming::{Incoming, remove_abandoned},
    object_path::object_path,
    reading,
};

/// Bytes of a body that are gathered before they are written. Up to two batches are in memory.
const BATCH_BYTES: usize = 1024 * 1024;

/// Name of the directory of incomplete files.
const INCOMING: &str = "incoming";

/// Objects as files under one directory, which several processes may share.
///
/// A body is written to `incoming/`, synced, and then published by a hard link, which fails if the
/// path is taken. Both directories must be on one file system with hard links.
pub struct LocalBlobStore {
    root: PathBuf,
    files: Arc<LocalFileSystem>,
    counter: Arc<AtomicU64>,
}

impl LocalBlobStore {
    /// Opens the directory, creates it if it is missing, and checks that it accepts files and hard
    /// links.
    ///
    /// # Errors
    /// [`OpenError`] if one of these fails.
    pub async fn open(directory: &Path) -> Result<Self, OpenError> {
        let fails = |reason: String| OpenError {
            location: format!("file://{}", directory.display()),
            reason,
        };
        fs::create_dir_all(directory.join(INCOMING)).map_err(|error| fails(error.to_string()))?;
        // Symbolic links are resolved once, so that a later change of one does not divide the store.
        let root = fs::canonicalize(directory).map_err(|error| fails(error.to_string()))?;
        let files =
            LocalFileSystem::new_with_prefix(&root).map_err(|error| fails(error.to_string()))?;
        let store = Self {
            root,
            files: Arc::new(files),
            counter: Arc::default(),
        };
        store
            .probe()
            .await
            .map_err(|error| fails(error.to_string()))?;
        Ok(store)
    }

    /// Returns a function that creates a file in `incoming` whose name starts with `name`.
    fn incoming<N>(&self, name: N) -> impl FnOnce() -> io::Result<Incoming> + use<N>
    where
        N: std::fmt::Display,
    {
        let directory = self.root.join(INCOMING);
        let process = std::process::id();
        let counter = Arc::clone(&self.counter);
        move || {
            loop {
                // Only has to be unique within the process; it orders nothing.
                let count = counter.fetch_add(1, Ordering::Relaxed);
                let path = directory.join(format!("{name}.{process}.{count}"));
                match Incoming::create(path) {
                    // A process with the same id created it: before a restart, or in a container.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    created => return created,
                }
            }
        }
    }

    fn file_path(&self, organization: OrganizationId, object: ObjectKey) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(
            object_path(organization, object)
                .parts()
                .map(|part| part.as_ref().to_owned()),
        );
        path
    }
}

#[async_trait]
impl BlobStore for LocalBlobStore {
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError> {
        let destination = self.file_path(organization, object);
        let create = self.incoming(object);
        let mut incoming = blocking({
            let destination = destination.clone();
            move || {
                // Saves the transfer of a body that would be refused at the end.
                if destination.exists() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                create()
            }
        })
        .await?;

        // A stream must not be polled after its end.
        let mut body = body.fuse();
        let mut size = 0;
        let mut batch = gather(&mut body, &mut size, limit).await?;
        while !batch.is_empty() {
            // One batch is written while the next one is gathered.
            let writing = tokio::task::spawn_blocking(move || {
                incoming.write(&batch)?;
                Ok(incoming)
            });
            // Its error is looked at after the writer has returned, which owns the file until then.
            let next = gather(&mut body, &mut size, limit).await;
            incoming = joined(writing).await?;
            batch = next?;
        }
        let root = self.root.clone();
        blocking(move || incoming.publish(&root, &destination)).await
    }

    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError> {
        reading::read(&*self.files, &object_path(organization, object), range).await
    }

    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError> {
        let path = self.file_path(organization, object);
        let open = move || match fs::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        match blocking(open).await.map_err(port_error)? {
            Some(file) => Ok(Box::new(file)),
            None => Err(PortError::NotFound(Resource::Object)),
        }
    }

    async fn size(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<u64, PortError> {
        reading::size(&*self.files, &object_path(organization, object)).await
    }

    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError> {
        reading::checksum(&*self.files, &object_path(organization, object)).await
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError> {
        reading::delete(&*self.files, &object_path(organization, object)).await
    }

    async fn sweep_unfinished(&self, begun_before: OffsetDateTime) -> Result<u64, PortError> {
        let directory = self.root.join(INCOMING);
        let limit = SystemTime::from(begun_before);
        let sweep = move || {
            let mut removed = 0;
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                // An upload in progress is as young as its last write.
                let old = entry.metadata().and_then(|facts| facts.modified());
                let old = old.is_ok_and(|modified| modified < limit);
                // By age as well, for file systems without locks.
                if remove_abandoned(&entry.path()) || old && fs::remove_file(entry.path()).is_ok() {
                    removed += 1;
                }
            }
            Ok(removed)
        };
        blocking(sweep).await.map_err(port_error)
    }

    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>> {
        reading::objects(&*self.files, &ObjectPath::default())
    }

    async fn disk_space(&self) -> Result<Option<DiskSpace>, PortError> {
        let root = self.root.clone();
        let measured = blocking(move || disk_space(&root)).await;
        measured.map(Some).map_err(port_error)
    }

    async fn probe(&self) -> Result<(), PortError> {
        let create = self.incoming("probe");
        let probe = move || create()?.probe();
        blocking(probe).await.map_err(port_error)
    }
}

/// Measures the disk of a directory.
pub(crate) fn disk_space(directory: &Path) -> io::Result<DiskSpace> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(DiskSpace {
        total: found.f_blocks.saturating_mul(found.f_frsize),
        // Not `f_bfree`, which includes blocks that only root may use.
        available: found.f_bavail.saturating_mul(found.f_frsize),
    })
}

/// Reads some chunks of the body, at least one unless it has ended.
async fn gather(
    body: &mut Fuse<ByteStream>,
    size: &mut u64,
    limit: u64,
) -> Result<Vec<Bytes>, PutBlobError> {
    let mut batch = Vec::new();
    let mut gathered = 0;
    while gathered < BATCH_BYTES {
        let Some(chunk) = body.next().await else {
            break;
        };
        let chunk = chunk?;
        *size = size.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        // While it arrives: announced lengths are the client's, and chunked bodies have none.
        if *size > limit {
            return Err(PutBlobError::TooLarge { limit });
        }
        if !chunk.is_empty() {
            gathered += chunk.len();
            batch.push(chunk);
        }
    }
    Ok(batch)
}

/// Runs blocking work on a thread for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PutBlobError> {
    joined(tokio::task::spawn_blocking(work)).await
}

async fn joined<T>(task: tokio::task::JoinHandle<io::Result<T>>) -> Result<T, PutBlobError> {
    match task.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => Err(PutBlobError::Exists),
        Ok(Err(error)) if is_disk_full(&error) => {
            tracing::error!(%error, "the disk of the file storage is full");
            let text = "the disk of the file storage is full";
            Err(PutBlobError::Port(PortError::DiskFull(text.to_owned())))
        }
        Ok(Err(error)) => Err(PutBlobError::Port(PortError::Unavailable(format!(
            "the file storage does not take bytes: {error}"
        )))),
        Err(error) => Err(PutBlobError::Port(PortError::Internal(error.to_string()))),
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

pub(crate) fn port_error(error: PutBlobError) -> PortError {
    match error {
        PutBlobError::Port(error) => error,
        error => PortError::Internal(error.to_string()),
    }
}
