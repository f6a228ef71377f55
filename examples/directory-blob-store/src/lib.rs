//! An adapter as another team writes it: the port [`BlobStore`] over a directory, with the standard library
//! alone.
//!
//! Depends on `labdata-domain` and `labdata-ports`, and on `labdata-port-contracts` in its tests, which run
//! the suite that the platform's own adapters pass. See `docs/EMBEDDING.md`.
//!
//! **Invariants.** An object is a file `ORGANIZATION/OBJECT`, created by a hard link to a finished and synced
//! file in `incoming/`: it is whole or absent, and never replaced. Calls block their thread while the disk
//! works. A service with an async runtime moves them to its threads for blocking work.

mod incoming;

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
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
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BlobReader, BlobStore, BodyBroken, ByteStream, PutBlobError},
};
use time::OffsetDateTime;

use crate::incoming::{Checksum, Incoming};

/// Name of the directory of unfinished files.
const INCOMING: &str = "incoming";
/// Bytes that are read at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// Objects as files of a directory. Several processes may share it.
#[derive(Debug)]
pub struct DirectoryBlobStore {
    root: PathBuf,
    next: AtomicU64,
}

impl DirectoryBlobStore {
    /// Opens the directory and creates it if it is missing.
    ///
    /// # Errors
    /// The system's error if it cannot be created.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root.join(INCOMING))?;
        Ok(Self {
            root: fs::canonicalize(root)?,
            next: AtomicU64::new(0),
        })
    }

    fn path(&self, organization: OrganizationId, object: ObjectKey) -> PathBuf {
        self.root
            .join(organization.to_string())
            .join(object.to_string())
    }

    /// Creates an unfinished file.
    fn incoming(&self, name: &str) -> io::Result<Incoming> {
        let process = std::process::id();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.root.join(INCOMING);
            match Incoming::create(path.join(format!("{name}.{process}.{number}"))) {
                // Left by an earlier process of this id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
        }
    }

    fn open_object(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(File, u64), PortError> {
        let file = File::open(self.path(organization, object)).map_err(read_error)?;
        let size = file.metadata().map_err(read_error)?.len();
        Ok((file, size))
    }
}

#[async_trait]
impl BlobStore for DirectoryBlobStore {
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError> {
        let path = self.path(organization, object);
        if path.exists() {
            return Err(PutBlobError::Exists);
        }
        // Removed on drop: when the body breaks off, and when the caller stops waiting.
        let mut incoming = self.incoming(&object.to_string()).map_err(write_error)?;
        let mut body = body.fuse();
        while let Some(chunk) = body.next().await {
            let chunk = chunk?;
            if incoming.size_with(&chunk) > limit {
                return Err(PutBlobError::TooLarge { limit });
            }
            incoming.write(&chunk).map_err(write_error)?;
        }
        match incoming.publish(&self.root, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(PutBlobError::Exists),
            published => Ok(published.map_err(write_error)?),
        }
    }

    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError> {
        let (mut file, size) = self.open_object(organization, object)?;
        let range = range.unwrap_or(0..size);
        let (start, end) = (range.start.min(size), range.end.min(size));
        file.seek(SeekFrom::Start(start)).map_err(read_error)?;
        let rest = file.take(end.saturating_sub(start));
        Ok(BlobBody {
            size,
            bytes: chunks(rest).boxed(),
        })
    }

    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError> {
        let (file, _) = self.open_object(organization, object)?;
        Ok(Box::new(file))
    }

    async fn size(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<u64, PortError> {
        let (_, size) = self.open_object(organization, object)?;
        Ok(size)
    }

    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError> {
        let (mut file, _) = self.open_object(organization, object)?;
        let mut checksum = Checksum::new();
        io::copy(&mut file, &mut checksum).map_err(read_error)?;
        Ok(checksum.finish())
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError> {
        match fs::remove_file(self.path(organization, object)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(read_error(error)),
            _ => Ok(()),
        }
    }

    async fn sweep_unfinished(&self, begun_before: OffsetDateTime) -> Result<u64, PortError> {
        let limit = SystemTime::from(begun_before);
        let mut removed = 0;
        for entry in fs::read_dir(self.root.join(INCOMING)).map_err(read_error)? {
            let entry = entry.map_err(read_error)?;
            let modified = entry.metadata().and_then(|facts| facts.modified());
            // An upload under way is as young as its last write.
            if modified.is_ok_and(|at| at < limit) && fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>> {
        let mut found = Vec::new();
        for (organization, directory) in named_entries::<OrganizationId>(&self.root) {
            let objects = named_entries::<ObjectKey>(&directory).into_iter();
            found.extend(objects.map(|(object, _)| Ok((organization, object))));
        }
        stream::iter(found).boxed()
    }

    async fn probe(&self) -> Result<(), PortError> {
        let probe = self.incoming("probe").and_then(|mut file| file.write(b"x"));
        probe.map_err(read_error)
    }
}

/// The bytes of a reader, chunk by chunk.
fn chunks(
    reader: impl Read + Send + 'static,
) -> impl futures::Stream<Item = Result<Bytes, BodyBroken>> + Send {
    stream::try_unfold(reader, |mut reader| async move {
        let mut chunk = Vec::new();
        let read = (&mut reader).take(PIECE_BYTES).read_to_end(&mut chunk);
        read.map_err(|error| BodyBroken(error.to_string()))?;
        Ok((!chunk.is_empty()).then(|| (Bytes::from(chunk), reader)))
    })
}

/// Entries of a directory whose names are ids; others are not this store's.
fn named_entries<Id: FromStr>(directory: &Path) -> Vec<(Id, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect()
}

/// The port's error for a failed read.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn read_error(error: io::Error) -> PortError {
    match error.kind() {
        io::ErrorKind::NotFound => PortError::NotFound(Resource::Object),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            PortError::DiskFull(error.to_string())
        }
        _ => PortError::Unavailable(error.to_string()),
    }
}

/// The port's error for a failed write.
fn write_error(error: io::Error) -> PutBlobError {
    match read_error(error) {
        // The directory itself no longer exists.
        PortError::NotFound(_) => {
            PortError::Unavailable("the directory of the files does not exist".to_owned()).into()
        }
        error => error.into(),
    }
}
