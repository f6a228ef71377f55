//! Writing a file that nobody sees before it is whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use labdata_domain::file::StoredBytes;
use tokio::task::JoinHandle;

use crate::reading::crc32c;

/// How many bytes are written between two requests to start the disk's own writing early, so that
/// the last sync is short.
const WRITE_BACK_BYTES: u64 = 32 * 1024 * 1024;

/// A file in the `incoming` directory. It is removed when this is dropped, whatever became of it:
/// once published it has another name.
pub(crate) struct Incoming {
    path: PathBuf,
    file: File,
    digest: Digest,
    size: u64,
    unsynced: u64,
    write_back: Option<JoinHandle<()>>,
}

impl Incoming {
    /// Creates the file.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(Self {
            path,
            file,
            digest: Digest::new(CrcAlgorithm::Crc32Iscsi),
            size: 0,
            unsynced: 0,
            write_back: None,
        })
    }

    /// Appends. Blocks.
    pub(crate) fn write(&mut self, chunks: &[Bytes]) -> io::Result<()> {
        for chunk in chunks {
            self.digest.update(chunk);
            self.file.write_all(chunk)?;
            let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            self.size += length;
            self.unsynced += length;
        }
        Ok(())
    }

    /// Starts writing to the disk what has gathered since the last time, beside further writes.
    pub(crate) fn start_write_back(&mut self) {
        let busy = self
            .write_back
            .as_ref()
            .is_some_and(|running| !running.is_finished());
        if busy || self.unsynced < WRITE_BACK_BYTES {
            return;
        }
        if let Ok(file) = self.file.try_clone() {
            self.unsynced = 0;
            // Whether it worked shows at the last sync, which reports errors of earlier writes.
            self.write_back = Some(tokio::task::spawn_blocking(move || drop(file.sync_data())));
        }
    }

    /// Makes the file durable and gives it its name, unless that is taken
    /// ([`io::ErrorKind::AlreadyExists`]). Blocks.
    pub(crate) fn publish(&self, root: &Path, destination: &Path) -> io::Result<StoredBytes> {
        self.file.sync_all()?;
        let directory = destination.parent().unwrap_or(root);
        fs::create_dir_all(directory)?;
        fs::hard_link(&self.path, destination)?;
        // A directory above may be as new as the file, by this call or by one beside it.
        for directory in directory
            .ancestors()
            .take_while(|above| above.starts_with(root))
        {
            sync_directory(directory)?;
        }
        Ok(StoredBytes {
            size: self.size,
            crc32c: crc32c(&self.digest)?,
        })
    }
}

impl Incoming {
    /// Makes sure that the file can be given a second name, and takes it away again.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let mut second = self.path.clone().into_os_string();
        second.push(".link");
        drop(fs::remove_file(&second));
        fs::hard_link(&self.path, &second)?;
        fs::remove_file(second)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // What cannot be removed now is found by the sweeper.
        drop(fs::remove_file(&self.path));
    }
}

/// Makes the names in a directory durable.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Other systems have no such call for directories.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
