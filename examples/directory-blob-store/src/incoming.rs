//! Files that become visible only when they are complete.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crc_fast::{CrcAlgorithm, Digest};
use labdata_domain::files::{Crc32c, StoredBytes};

/// Size and CRC-32C of bytes that are written to it.
pub(crate) struct Checksum {
    digest: Digest,
    size: u64,
}

impl Checksum {
    pub(crate) fn new() -> Self {
        Self {
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            size: 0,
        }
    }

    pub(crate) fn finish(&self) -> StoredBytes {
        StoredBytes {
            size: self.size,
            // The digest of a 32-bit checksum fits into 32 bits.
            crc32c: Crc32c::new(u32::try_from(self.digest.finalize()).unwrap_or_default()),
        }
    }
}

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        self.size += length(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An unfinished file, removed on drop. A published file has another name by then.
pub(crate) struct Incoming {
    path: PathBuf,
    file: File,
    checksum: Checksum,
}

impl Incoming {
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        Ok(Self {
            file: File::create_new(&path)?,
            path,
            checksum: Checksum::new(),
        })
    }

    /// The size that the file would have with these bytes.
    pub(crate) fn size_with(&self, bytes: &[u8]) -> u64 {
        self.checksum.size.saturating_add(length(bytes))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.checksum.write_all(bytes)
    }

    /// Makes the file durable and gives it its path.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the path is taken.
    pub(crate) fn publish(self, root: &Path, path: &Path) -> io::Result<StoredBytes> {
        self.file.sync_all()?;
        let directory = path.parent().unwrap_or(root);
        fs::create_dir_all(directory)?;
        fs::hard_link(&self.path, path)?;
        // The names as well: of the object in its directory, and of the directory.
        for directory in [directory, root] {
            File::open(directory)?.sync_all()?;
        }
        Ok(self.checksum.finish())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Where this fails, `sweep_unfinished` removes it.
        drop(fs::remove_file(&self.path));
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
